/** A small click model, as DLRM: tables of embeddings, the products of their rows, and two networks. */
import { concat, floor, Generator, matmul, rand, randn, sigmoid, stack, type Tensor, tidy } from "@opt/core";
import { TensorDataset } from "@opt/data";
import { bceWithLogits, Embedding, Linear, Module, ReLU, Sequential } from "@opt/nn";
import { endless } from "./batches";
import type { Task } from "./task";

/** Rows of each table: users, items, places, devices. */
const TABLES = [300, 200, 40, 8];
const FEATURES = 6;
const WIDTH = 8;
const SEEN = 8192;
const UNSEEN = 1024;
const BATCH = 128;
/** Of the clicks, which are the same for every run. */
const SEED = 20;

class Clicks extends Module {
  readonly tables: readonly Embedding[];
  readonly features: Sequential;
  readonly top: Sequential;

  constructor(generator: Generator, sparse: boolean) {
    super();
    this.tables = TABLES.map((rows) => new Embedding(rows, WIDTH, { sparse, generator }));
    this.features = new Sequential(
      new Linear(FEATURES, 16, { generator }),
      new ReLU(),
      new Linear(16, WIDTH, { generator }),
    );
    const vectors = TABLES.length + 1;
    this.top = new Sequential(
      new Linear(WIDTH + vectors ** 2, 32, { generator }),
      new ReLU(),
      new Linear(32, 1, { generator }),
    );
  }

  /** Logits [batch], from numbers [batch, features] and a row of each table [batch, tables]. */
  forward(numbers: Tensor, rows: Tensor): Tensor {
    const dense = this.features.forward(numbers);
    const looked = this.tables.map((table, i) => table.forward(rows.select(1, i)));
    const vectors = stack([dense, ...looked], 1);
    const products = matmul(vectors, vectors.transpose(1, 2)).reshape([-1, (TABLES.length + 1) ** 2]);
    return this.top.forward(concat([dense, products], 1)).select(1, 0);
  }
}

/** Rows are drawn unevenly, as users and items are. Clicks follow products of hidden vectors. */
function drawnClicks() {
  return tidy(() => {
    const generator = new Generator(SEED);
    const count = SEEN + UNSEEN;
    const numbers = randn([count, FEATURES], { generator });
    const rows = TABLES.map((size) => floor(rand([count], { generator }).square().mul(size)).to("i32"));
    const [user, item, place, device] = TABLES.map((size, i) => randn([size, WIDTH], { generator }).at(rows[i]!)) as [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const weights = randn([FEATURES], { generator });
    const score = user.mul(item).sum(1).add(user.mul(device).sum(1)).add(place.sum(1)).add(matmul(numbers, weights));
    const clicked = rand([count], { generator })
      .lt(sigmoid(score.sub(1)))
      .to("f32");
    const whole = [numbers, stack(rows, 1), clicked];
    const part = (from: number, to: number) => new TensorDataset(...whole.map((column) => column.slice(from, to)));
    return { seen: part(0, SEEN), unseen: part(SEEN, count) };
  });
}

const isTable = (name: string) => name.startsWith("tables.");

export const task: Task = {
  title: "Clicks",
  about: `A DLRM-like model of ${TABLES.length} tables with ${TABLES.reduce((a, b) => a + b)} rows of ${WIDTH} numbers, on ${SEEN} generated views, ${BATCH} a step. The loss is of ${UNSEEN} other views.`,
  budget: 200,
  restLr: 0.01,
  isMatrix: (name, { shape }) => !isTable(name) && shape.length === 2,
  isTable,
  files: [],
  async prepared() {
    const { seen, unseen } = drawnClicks();
    return ({ generator, sparse }) => {
      const model = new Clicks(generator, sparse);
      const loss = (numbers: Tensor, rows: Tensor, clicked: Tensor) =>
        bceWithLogits(model.forward(numbers, rows), clicked);
      return {
        model,
        batches: endless(seen, BATCH, generator),
        loss,
        unseen: unseen.batch(Int32Array.from({ length: UNSEEN }, (_, i) => i)),
        evaluation: loss,
      };
    };
  },
};

/** A recommender (DLRM, Naumov et al. 2019): 26 tables of 20,000 rows of 16, whose gradients are of rows, products of all pairs, two networks. */
import { concat, indexSelect, stack, type Tensor, tensor } from "@opt/core";
import { bceWithLogits, Embedding, Linear, Module, ModuleList } from "@opt/nn";
import { integers, values } from "../nn/values";
import type { RealTask } from "./task";

const [BATCH, DENSE, TABLES, ROWS, WIDTH] = [2048, 13, 26, 20_000, 16];
const VECTORS = TABLES + 1;
const pairs = Array.from({ length: VECTORS * VECTORS }, (_, i) => i).filter(
  (i) => i % VECTORS < Math.floor(i / VECTORS),
);

const network = (...widths: readonly number[]) =>
  new ModuleList(widths.slice(1).map((width, i) => new Linear(widths[i]!, width)));

class Recommender extends Module {
  readonly bottom = network(DENSE, 512, 256, WIDTH);
  readonly tables = new ModuleList(Array.from({ length: TABLES }, () => new Embedding(ROWS, WIDTH, { sparse: true })));
  readonly top = network(WIDTH + pairs.length, 512, 256, 1);
  readonly #pairs = tensor(pairs, { dtype: "i32" });

  forward(dense: Tensor, places: Tensor): Tensor {
    let hidden = dense;
    for (const layer of this.bottom) hidden = layer.forward(hidden).relu();
    const rows = [...this.tables].map((table, i) => table.forward(places.select(0, i)));
    const vectors = stack([hidden, ...rows], 1);
    const products = vectors.matmul(vectors.transpose(1, 2)).reshape([BATCH, VECTORS * VECTORS]);
    let result = concat([hidden, indexSelect(products, 1, this.#pairs)], 1);
    for (const [i, layer] of [...this.top].entries()) {
      result = layer.forward(result);
      if (i < 2) result = result.relu();
    }
    return result.squeeze(1);
  }
}

export function dlrm(): RealTask {
  const model = new Recommender();
  return {
    model,
    batch: (index) => [
      tensor(values(BATCH * DENSE, 104_729 + 2 * index), { shape: [BATCH, DENSE] }),
      tensor(integers(TABLES * BATCH, 1299 + 2 * index, ROWS), { shape: [TABLES, BATCH] }),
      tensor(Float32Array.from(integers(BATCH, 31 + 2 * index, 2)), { shape: [BATCH] }),
    ],
    loss: (dense, places, clicks) => bceWithLogits(model.forward(dense!, places!), clicks!),
    optimizer: "SGD",
    lr: 0.1,
  };
}

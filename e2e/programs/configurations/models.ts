/** The models of configurations: whole, or with layers that the ranks of an axis divide. */

import { manualSeed, oneHot, parameter, randn, recompute, type Tensor, tensor } from "@opt/core";
import { lora } from "@opt/models";
import {
  BatchNorm2d,
  Conv2d,
  Dropout,
  Embedding,
  LayerNorm,
  type LayerOptions,
  Linear,
  LSTM,
  Module,
  ModuleList,
  scaledDotProductAttention,
} from "@opt/nn";
import { ColumnParallelLinear, type Communicator, ParallelEmbedding, RowParallelLinear } from "@opt/parallel";
import type { Configuration } from "@opt/testkit/configurations";

/** Without options, layers are whole. */
class Layers {
  readonly options: LayerOptions;

  constructor(
    readonly one: Configuration,
    readonly axis: Communicator | undefined,
  ) {
    this.options = { dtype: one.dtype };
  }

  get ranks(): number {
    return this.axis?.size ?? 1;
  }

  columns(
    from: number,
    to: number,
    more: { bias?: boolean; gatherOutput?: boolean } = {},
  ): Linear | ColumnParallelLinear {
    const { gatherOutput, ...own } = more;
    return this.axis === undefined
      ? new Linear(from, to, { ...this.options, ...own })
      : new ColumnParallelLinear(from, to, this.axis, { ...this.options, ...more });
  }

  rows(from: number, to: number): Linear | RowParallelLinear {
    return this.axis === undefined
      ? new Linear(from, to, this.options)
      : new RowParallelLinear(from, to, this.axis, this.options);
  }

  table(count: number, width: number): Embedding | ParallelEmbedding {
    return this.axis === undefined
      ? new Embedding(count, width, this.options)
      : new ParallelEmbedding(count, width, this.axis, this.options);
  }

  again<Inputs extends readonly unknown[], Result>(f: (...inputs: Inputs) => Result, ...inputs: Inputs): Result {
    return this.one.recompute ? recompute(f, ...inputs) : f(...inputs);
  }
}

const CLASSES = 3;
const VOCABULARY = 10;
const PLACES = 5;

/** Two layers beside a connection past them. */
export class Block extends Module {
  readonly up;
  readonly down;
  readonly drop;

  constructor(layers: Layers, width: number) {
    super();
    this.up = layers.columns(width, width);
    this.down = layers.rows(width, width);
    this.drop = new Dropout(layers.one.dropout ? 0.25 : 0);
  }

  forward(x: Tensor): Tensor {
    return x.add(this.drop.forward(this.down.forward(this.up.forward(x).tanh())));
  }
}

abstract class Classifier extends Module {
  head: Linear | ColumnParallelLinear;
  readonly #layers: Layers;

  constructor(
    layers: Layers,
    readonly features: number,
  ) {
    super();
    this.#layers = layers;
    this.head = new Linear(features, CLASSES, layers.options);
  }

  protected get layers(): Layers {
    return this.#layers;
  }

  abstract outputs(x: Tensor): Tensor;

  /** @param burst what the gradient of one element is raised by: the outputs stay as they are. Of no samples where none overflows */
  forward(x: Tensor, burst?: Tensor): Tensor {
    const outputs = this.outputs(x);
    if (burst === undefined) return outputs;
    const { placement, dtype } = this.probe;
    const isHere = (placement?.cuts ?? []).every(({ axis }) => axis.index === 0);
    if (!isHere) return outputs;
    const element = this.probe.reshape([this.probe.size]).slice(0, 1);
    const first = oneHot(tensor([0], { dtype: "i32" }), outputs.shape.at(-1)!)
      .to(dtype)
      .reshape([outputs.shape.at(-1)!]);
    return outputs.add(first.mul(element.sub(element.detach()).mul(burst.to(dtype))));
  }

  /** A parameter of which a rank has the first element. */
  get probe(): Tensor {
    return this.head.weight;
  }

  /** What `frozen` freezes. */
  abstract get stem(): Module;

  replaceHead(): void {
    this.head = new Linear(this.features, CLASSES, this.layers.options);
  }
}

class Mlp extends Classifier {
  readonly stem;
  /** Stages of blocks. */
  readonly blocks: ModuleList<ModuleList<Block>>;

  constructor(layers: Layers) {
    const { width } = layers.one;
    super(layers, width);
    this.stem = new Linear(6, width, layers.options);
    const stage = (count: number) => new ModuleList(Array.from({ length: count }, () => new Block(layers, width)));
    this.blocks = new ModuleList([stage(2), stage(1)]);
  }

  override get probe(): Tensor {
    return [...[...this.blocks][0]!][0]!.up.weight;
  }

  outputs(x: Tensor): Tensor {
    let hidden = this.stem.forward(x);
    for (const block of [...this.blocks].flatMap((stage) => [...stage]))
      hidden = this.layers.again((h: Tensor) => block.forward(h), hidden);
    return this.head.forward(hidden);
  }
}

class Cnn extends Classifier {
  readonly stem;
  readonly norm;
  readonly drop;

  constructor(layers: Layers) {
    super(layers, 32);
    this.stem = new Conv2d(1, 2, 3, { padding: 1, ...layers.options });
    this.norm = new BatchNorm2d(2, { dtype: layers.one.dtype });
    this.drop = new Dropout(layers.one.dropout ? 0.25 : 0);
  }

  outputs(x: Tensor): Tensor {
    const seen = this.layers.again((h: Tensor) => this.norm.forward(this.stem.forward(h)).relu(), x);
    return this.head.forward(this.drop.forward(seen.reshape([x.shape[0]!, this.features])));
  }
}

class Gpt extends Classifier {
  readonly stem;
  readonly places;
  readonly norm;
  readonly query;
  readonly key;
  readonly value;
  readonly out;
  readonly block;
  readonly last;

  constructor(layers: Layers) {
    const { width, dtype } = layers.one;
    super(layers, width);
    this.stem = layers.table(VOCABULARY, width);
    this.places = parameter(randn([PLACES, width], { dtype }));
    this.norm = new LayerNorm(width, { dtype });
    this.query = layers.columns(width, width);
    this.key = layers.columns(width, width, { bias: false }); // softmax is the same with one: its gradient is rounding alone
    this.value = layers.columns(width, width);
    this.out = layers.rows(width, width);
    this.block = new Block(layers, width);
    this.last = new LayerNorm(width, { dtype });
    this.head = layers.columns(width, VOCABULARY, { bias: false, gatherOutput: true });
    (this.head as { weight: Tensor }).weight = this.stem.weight;
  }

  outputs(x: Tensor): Tensor {
    const begun = this.stem.forward(x).add(this.places);
    const seen = this.layers.again((h: Tensor) => h.add(this.attention(this.norm.forward(h))), begun);
    return this.head.forward(this.last.forward(this.layers.again((h: Tensor) => this.block.forward(h), seen)));
  }

  override get probe(): Tensor {
    return this.query.weight;
  }

  attention(x: Tensor): Tensor {
    const [batch, places] = x.shape as [number, number, number];
    const heads = 4 / this.layers.ranks;
    const [q, k, v] = [this.query, this.key, this.value].map((layer) =>
      layer
        .forward(x)
        .reshape([batch, places, heads, this.features / 4])
        .transpose(1, 2),
    ) as [Tensor, Tensor, Tensor];
    const seen = scaledDotProductAttention(q, k, v, { isCausal: true }).transpose(1, 2);
    return this.out.forward(seen.reshape([batch, places, heads * (this.features / 4)]));
  }

  override replaceHead(): void {
    const { width } = this.layers.one;
    this.head = this.layers.columns(width, VOCABULARY, { bias: false, gatherOutput: true });
  }
}

/** Words without an order; word 0 is padding. */
class Bag extends Classifier {
  readonly stem;

  constructor(layers: Layers) {
    const { width, sparse = false } = layers.one;
    super(layers, width);
    this.stem = new Embedding(VOCABULARY, width, { sparse, paddingIdx: 0, ...layers.options });
  }

  outputs(x: Tensor): Tensor {
    return this.head.forward(this.stem.forward(x).mean(1).tanh());
  }
}

class Recurrent extends Classifier {
  readonly stem;

  constructor(layers: Layers) {
    super(layers, 4);
    const { dropout } = layers.one;
    this.stem = new LSTM(3, 4, { batchFirst: true, numLayers: 2, dropout: dropout ? 0.25 : 0, ...layers.options });
  }

  outputs(x: Tensor): Tensor {
    const [output] = this.stem.forward(x);
    return this.head.forward(output.slice(PLACES - 1, PLACES, 1).reshape([x.shape[0]!, 4]));
  }
}

/** A parameter without axes, and one that no step uses. */
class Scale extends Classifier {
  readonly stem;
  readonly scale;
  readonly idle;

  constructor(layers: Layers) {
    const { width, dtype } = layers.one;
    super(layers, width);
    this.stem = new Linear(6, width, layers.options);
    this.scale = parameter(0.5, { dtype });
    this.idle = parameter([1, 2], { dtype });
  }

  outputs(x: Tensor): Tensor {
    return this.head.forward(this.stem.forward(x).mul(this.scale).tanh());
  }
}

const CLASSES_OF = { mlp: Mlp, cnn: Cnn, gpt: Gpt, embedding: Bag, lstm: Recurrent, scale: Scale } as const;

/** Of each kind: the extents of a sample, of its target, and the numbers that they are below, or 0 for any number. */
export const SAMPLES = {
  mlp: { x: [6], words: 0, y: [], classes: CLASSES },
  cnn: { x: [1, 4, 4], words: 0, y: [], classes: CLASSES },
  gpt: { x: [PLACES], words: VOCABULARY, y: [PLACES], classes: VOCABULARY },
  embedding: { x: [4], words: VOCABULARY, y: [], classes: CLASSES },
  lstm: { x: [PLACES, 3], words: 0, y: [], classes: CLASSES },
  scale: { x: [6], words: 0, y: [], classes: CLASSES },
} as const;

/** Muon trains matrices, and may be combined with what trains the rest. SparseAdam trains a table. */
const takes = ({ optimizer, wrapper }: Configuration, name: string, { shape }: Tensor) =>
  (optimizer !== "Muon" || shape.length === 2 || wrapper === "combine") &&
  (optimizer !== "SparseAdam" || name.startsWith("stem"));

/** The model as a program has it before the optimizer is made. */
export function modelOf(one: Configuration, axis?: Communicator): Classifier {
  manualSeed(one.seed);
  const model = new CLASSES_OF[one.model](new Layers(one, axis));
  if (one.replaced) model.replaceHead();
  if (one.frozen) model.stem.freeze();
  const isDivided = one.phases.some((phase) => phase.model > 1);
  if (one.adapters) lora(model, { rank: 2, targets: isDivided ? ["head"] : [/./] });
  for (const [name, parameter] of model.namedParameters())
    if (!takes(one, name, parameter)) parameter.requiresGrad = false;
  return model;
}

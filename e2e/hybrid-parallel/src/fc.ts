/** One rank of a fully connected layer whose 8x8 weight is split by rows, trained by momentum. */
import { type Box, type Layout, loadCheckpoint } from "@opt/checkpoint";
import { boxesOfRank } from "@opt/checkpoint/plan";
import { type Compiled, compile, parameter, type Tensor, tensor } from "@opt/core";
import { SGD } from "@opt/sgd";

export const OUTPUTS = 8;
export const INPUTS = 8;
const BATCH = 4;
const LEARNING_RATE = 0.05;
const MOMENTUM = 0.9;

/** The layer's rows go to the ranks of the model axis; its moments follow it. */
export function layoutOf(ranks: number): Layout {
  return { mesh: { shape: [ranks], axes: ["model"] }, tensors: { "fc.weight": ["model"], "*": "replicate" } };
}

/** The rows of a rank. */
function rowsOf(rank: number, ranks: number): Box {
  return boxesOfRank(layoutOf(ranks), { name: "fc.weight", shape: [OUTPUTS, INPUTS] }, rank)[0]!;
}

function initialWeight(row: number, column: number): number {
  return Math.fround(Math.sin(1 + row * INPUTS + column) / 4);
}

/** The same batch for every rank; each rank is asked for its own outputs only. */
function batchOf(step: number): { inputs: Tensor; targets: number[][] } {
  const inputs = Array.from({ length: BATCH }, (_, b) =>
    Array.from({ length: INPUTS }, (_, i) => Math.sin(step * 31 + b * 7 + i)),
  );
  const targets = inputs.map((input) =>
    Array.from({ length: OUTPUTS }, (_, o) => Math.cos(input[o % INPUTS]! * (o + 1))),
  );
  return { inputs: tensor(inputs), targets };
}

export class FcRank {
  readonly rank: number;
  readonly ranks: number;
  readonly weight: Tensor;
  readonly optimizer: SGD;
  readonly #trainOn: Compiled<[inputs: Tensor, targets: Tensor], void>;

  constructor(rank: number, ranks: number, saved?: Readonly<Record<string, Tensor>>) {
    const { offset, size } = rowsOf(rank, ranks);
    const [first, rows] = [offset[0]!, size[0]!];
    this.rank = rank;
    this.ranks = ranks;
    const fresh = Array.from({ length: rows }, (_, r) =>
      Array.from({ length: INPUTS }, (_, c) => initialWeight(first + r, c)),
    );
    this.weight = parameter(saved ? saved["fc.weight"]!.dataSync() : fresh, {
      shape: [rows, INPUTS],
      name: "fc.weight",
    });
    this.optimizer = new SGD([this.weight], { lr: LEARNING_RATE, momentum: MOMENTUM });
    this.#trainOn = compile((inputs, targets) => {
      const error = inputs.matmul(this.weight.transpose()).sub(targets);
      error.mul(error).sum().backward();
      this.optimizer.step();
      this.optimizer.zeroGrad();
    });
    if (saved === undefined) return;
    const state = { "fc.weight": { step: 1, momentum_buffer: saved["moments.fc.weight"]! } };
    this.optimizer.loadStateDict({ groups: [{ params: ["fc.weight"] }], state });
  }

  /** The running sum of the gradients, once it has stepped. */
  get moments(): Tensor {
    return this.optimizer.stateDict().state["fc.weight"]!.momentum_buffer as Tensor;
  }

  /** Goes on from a checkpoint, whatever number of ranks it was re-sliced for. */
  static async resume(folder: string, rank: number, ranks: number): Promise<FcRank> {
    const { tensors } = await loadCheckpoint(folder, { layout: layoutOf(ranks), rank });
    return new FcRank(rank, ranks, tensors);
  }

  /** Steps `from` to `to`: moments = 0.9 moments + gradient; weight = weight - 0.05 moments. */
  train(from: number, to: number): this {
    const { offset, size } = rowsOf(this.rank, this.ranks);
    for (let step = from; step < to; step++) {
      const { inputs, targets } = batchOf(step);
      this.#trainOn(inputs, tensor(targets.map((row) => row.slice(offset[0], offset[0]! + size[0]!))));
    }
    return this;
  }

  /** What this rank saves: its slices, and the scalars that every rank has. */
  contents(step: number) {
    const scalars = { learning_rate: tensor(LEARNING_RATE), momentum: tensor(MOMENTUM) };
    return {
      step,
      tensors: { "fc.weight": this.weight, "moments.fc.weight": this.moments, ...scalars },
      values: { step },
    };
  }
}

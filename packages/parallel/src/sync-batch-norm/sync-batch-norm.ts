/** Batch normalisation by the statistics of all ranks' samples. */
import { check, checkTensor, concat, full, show, type Tensor } from "@opt/core";
import { BatchNorm, type BatchNormOptions, isBatchNorm, type Module, type WiderStatistics } from "@opt/nn";
import { Communicator } from "../communicator/communicator";
import { joined, shared } from "../tensor-parallel/exchange";

const WHERE = "SyncBatchNorm";

/**
 * BatchNorm of [batch, features, ...] over ranks: in training mean and variance are those of all ranks' samples, and so are the running
 * ones and the gradients. Ranks may have different numbers of samples, also none. It equals one process's BatchNorm within rounding.
 * All ranks call forward, and backward, as often as the others.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE, NOT_SYNC, UNSUPPORTED if the engine cannot wait in the middle of a forward
 * @see torch.nn.SyncBatchNorm
 * @example
 * const y = new SyncBatchNorm(4, await connect()).forward(rand([2, 4, 6, 6])); // [2, 4, 6, 6]
 */
export class SyncBatchNorm extends BatchNorm {
  constructor(features: number, communicator: Communicator, options: BatchNormOptions = {}) {
    super(features, options);
    this.widerStatistics = statisticsOver(communicator);
  }

  /**
   * Gives each batch norm of a model the statistics of all ranks. The layers stay what they are, with their weights and names.
   *
   * @throws OptError BAD_ARGUMENT
   * @see torch.nn.SyncBatchNorm.convert_sync_batchnorm
   * @example
   * const model = SyncBatchNorm.convert(new Sequential(new Linear(4, 8), new BatchNorm1d(8)), await connect());
   */
  static convert<M extends Module>(model: M, communicator: Communicator): M {
    const isModel = typeof model?.modules === "function";
    check(isModel, "BAD_ARGUMENT", `${WHERE}.convert`, () => `the model must be a module, got ${show(model)}.`);
    const statistics = statisticsOver(communicator);
    for (const module of model.modules()) if (isBatchNorm(module)) module.widerStatistics = statistics;
    return model;
  }

  forward(x: Tensor): Tensor {
    checkTensor(WHERE, x);
    const fits = x.shape.length >= 2;
    const problem = () => `the input must be [batch, features, ...], got [${x.shape}].`;
    check(fits, "BAD_SHAPE", WHERE, problem, "Reshape it.");
    return this.normalize(x);
  }
}

/** Null for one rank, whose batch is the whole. */
function statisticsOver(communicator: Communicator): WiderStatistics | null {
  const isOurs = communicator instanceof Communicator;
  const problem = () => `needs a communicator, got ${show(communicator)}.`;
  check(isOurs, "BAD_ARGUMENT", WHERE, problem, "await connect()");
  return communicator.size === 1 ? null : (planes) => statisticsOf(planes, communicator);
}

/** Each rank's mean, squares about it and count, of which all make those of the whole (Chan et al. 1979): in one exchange. */
function statisticsOf(planes: Tensor, communicator: Communicator): ReturnType<WiderStatistics> {
  const { size } = communicator;
  const { dtype, device } = planes;
  const features = planes.shape[1]!;
  const own = planes.size / features;
  const sumOf = (values: Tensor) => values.sum(2).sum(0);
  const ownMean = sumOf(planes).div(Math.max(own, 1));
  const centered = planes.sub(ownMean.unsqueeze(1));
  const row = concat([ownMean, sumOf(centered.mul(centered)), full([1], own, { dtype, device })]);
  const width = 2 * features + 1;
  const extents = new Array<number>(size).fill(width);
  // Each rank's gradients reach all others.
  const rows = shared(WHERE, joined(WHERE, row, extents, communicator), communicator).reshape([size, width]);
  const [means, squares] = [rows.slice(0, features, 1), rows.slice(features, 2 * features, 1)];
  const counts = rows.slice(2 * features, width, 1);
  const count = counts.sum();
  const mean = means.mul(counts).sum(0).div(count);
  const apart = means.sub(mean);
  const variance = squares.add(apart.mul(apart).mul(counts)).sum(0).div(count);
  return { mean, variance, count };
}

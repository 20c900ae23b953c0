import { check, checkTensor, noGrad, show, type Tensor, tidy } from "@opt/core";
import { isModule, type Module } from "../../module/module";
import { isBatchNorm } from "./batch-norm";

const WHERE = "updateBatchNorm";

/**
 * Computes the running statistics of all batch norms again: plain averages over the batches of `data`, for weights that were averaged or
 * loaded. All layers are in training mode meanwhile, without gradients; then modes and momenta are put back, also after an error.
 *
 * @param data batches for `forward`, or lists that begin with one, as a `DataLoader` gives them
 * @throws OptError BAD_ARGUMENT for a model that is no module, data without batches or a batch that is no tensor; what the model throws
 * @see torch.optim.swa_utils.update_bn
 * @example
 * const model = new Sequential(new Linear(8, 16), new BatchNorm1d(16));
 * const swa = new StochasticWeightAverage(model.namedTensors());
 * await swa.averaged(() => updateBatchNorm(model, [rand([32, 8]), rand([32, 8])]));
 */
export async function updateBatchNorm(
  model: Module,
  data: Iterable<Tensor | readonly [Tensor, ...unknown[]]> | AsyncIterable<Tensor | readonly [Tensor, ...unknown[]]>,
): Promise<void> {
  check(isModule(model), "BAD_ARGUMENT", WHERE, () => `the model must be a module, got ${show(model)}.`);
  const isIterable =
    typeof data === "object" && data !== null && (Symbol.iterator in data || Symbol.asyncIterator in data);
  const problem = () => `data must be iterable, got ${show(data)}.`;
  check(isIterable, "BAD_ARGUMENT", WHERE, problem, "A DataLoader or a list.");
  const norms = model.modules().filter(isBatchNorm);
  if (norms.length === 0) return;
  const momenta = norms.map(({ momentum }) => momentum);
  const modes = model.modules().map((module) => [module, module.training] as const);
  const forward = (batch: unknown) => {
    const input = Array.isArray(batch) ? batch[0] : batch;
    checkTensor(WHERE, input, "each batch");
    noGrad(() => tidy(() => void model.forward(input as never)));
  };
  for (const norm of norms) norm.resetRunningStats();
  try {
    model.train();
    for (const norm of norms) norm.momentum = null;
    if (Symbol.asyncIterator in data) for await (const batch of data) forward(batch);
    else for (const batch of data) forward(batch);
  } finally {
    for (const [i, norm] of norms.entries()) norm.momentum = momenta[i]!;
    for (const [module, training] of modes) module.training = training;
  }
}

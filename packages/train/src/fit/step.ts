/** One optimizer step, as a loop written by hand takes it: forward and backward for each batch, then the update. */
import { type Compiled, check, clipGradNorm, clipGradValue, compile, concat, type Tensor, tidy } from "@opt/core";
import type { Module } from "@opt/nn";
import type { Metric } from "../metrics/metric";
import { answersAtOnce } from "../metrics/reads";
import { type FitOptions, WHERE } from "./options";
import type { FitOptimizer, Forwarded, Replica } from "./parts";

interface Parts<Batch> {
  readonly module: Module;
  /** On several ranks. */
  readonly replica: Replica | undefined;
  readonly forward: (batch: Batch) => Forwarded;
  readonly options: FitOptions<Batch>;
}

/** Results are the loss, and behind it what each metric adds. */
export interface TrainingStep<Batch> {
  /** Forward and backward of a batch; its gradients wait for those of others. */
  backward(batch: Batch): Tensor;
  /** Forward and backward of a step's last batch, and the update. */
  whole(batch: Batch): Tensor | Promise<Tensor>;
  /** The update alone, with the gradients that are there. */
  update(): void | Promise<void>;
  /** Has the next step compared with the compiled one. */
  checkNext(): void;
  dispose(): void;
}

export function trainingStep<Batch>({ module, replica, forward, options }: Parts<Batch>): TrainingStep<Batch> {
  const { optimizer, scaler, ema, clip, accumulate = 1, metrics = [], compile: isCompiled = true } = options;
  const trained = optimizer.groups.flatMap(({ params }) => params);
  const made: Pick<Compiled<never, unknown>, "checkNext" | "dispose">[] = [];
  const wrap = <Args extends unknown[], Result extends Tensor | undefined>(f: (...args: Args) => Result) => {
    if (!isCompiled) return (...args: Args) => tidy(() => f(...args)?.detach()) as Result;
    const compiled = compile(f);
    made.push(compiled);
    return compiled;
  };

  const backward = (batch: Batch) => {
    const forwarded = forward(batch);
    const { loss } = forwarded;
    const share = accumulate > 1 ? loss.div(accumulate) : loss;
    (scaler ? scaler.scale(share) : share).backward();
    warnWithoutGradients(replica === undefined && !isSharded(optimizer) ? trained : module.parameters());
    return measured(forwarded, metrics);
  };
  const beforeStep = () => {
    if (clip && scaler) scaler.unscale(optimizer as never);
    if (clip?.norm !== undefined) clipGradNorm(module.parameters(), clip.norm);
    if (clip?.value !== undefined) clipGradValue(module.parameters(), clip.value);
  };
  const afterStep = () => {
    optimizer.zeroGrad();
    ema?.update();
  };
  /** A promise where the scaler's device answers later, and with a divided optimizer. */
  const stepOnce = () => {
    beforeStep();
    const stepped = scaler ? after(scaler.step(optimizer as never), () => scaler.update()) : optimizer.step();
    return after(stepped, afterStep);
  };

  const waits = isSharded(optimizer) || (scaler !== undefined && !answersAtOnce(module.parameters()[0]!));
  const alone = wrap(backward);
  const update = waits ? stepOnce : wrap(() => void stepOnce());
  const inOne = wrap((batch: Batch) => {
    const result = backward(batch);
    void stepOnce();
    return result;
  });
  return {
    backward: replica ? (batch) => replica.noSync(() => alone(batch)) : alone,
    whole:
      replica || waits
        ? async (batch) => {
            const result = alone(batch);
            await replica?.sync();
            await update();
            return result;
          }
        : inOne,
    update: replica ? () => replica.sync().then(update) : update,
    checkNext() {
      for (const each of made) each.checkNext();
    },
    dispose() {
      for (const each of made) each.dispose();
    },
  };
}

const after = (before: void | Promise<void>, next: () => void | Promise<void>) => (before ? before.then(next) : next());

/** A divided one: its state is on all ranks. */
export const isSharded = (optimizer: FitOptimizer) => "contents" in optimizer;

/** One tensor, so that there is one read. @throws OptError BAD_ARGUMENT for metrics without an output and a target */
export function measured({ loss, output, target }: Forwarded, metrics: readonly Metric[]): Tensor {
  if (metrics.length === 0) return loss;
  check(
    output && target,
    "BAD_ARGUMENT",
    WHERE,
    () => "metrics need an output and a target, got a loss alone.",
    "Return { loss, output, target } from forward.",
  );
  const sums = metrics.map((metric) => metric.sums(output.detach(), target).to("f32"));
  return concat([loss.detach().to("f32").reshape([1]), ...sums]);
}

let hasWarned = false;

/** Runs where a step is traced, not in each one. */
function warnWithoutGradients(trained: readonly Tensor[]): void {
  if (hasWarned || trained.some(({ grad }) => grad !== null)) return;
  hasWarned = true;
  const cure = "Compute the loss from model.forward() without noGrad or detach, and make the optimizer of this model.";
  console.warn(`[${WHERE}] a step should leave gradients, got none. ${cure}`);
}

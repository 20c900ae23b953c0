/** The smallest configuration that still fails, found by taking features away. */
import { type Configuration, isFit, type Phase } from "./configuration";

type Undefinable<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** What every run has, or a break needs. */
const NO_FEATURE = /^(seed|model|dtype|width|optimizer|options|stepsPerEpoch|phases|break|through)$/;

/** Its simplest forms first: without a feature, or with the plainest one in its place. */
export function smaller(one: Configuration): Configuration[] {
  const { phases, break: _, through: __, killed: ___, trainable: ____, ...rest } = one;
  const whole = { shardOver: undefined, units: undefined };
  const withPhase = (i: number, change: Undefinable<Phase>): Configuration =>
    ({ ...one, phases: phases.map((phase, k) => (k === i ? { ...phase, ...change } : phase)) }) as never;
  const candidates: Configuration[] = [
    ...(phases.length > 1 ? phases.map((phase) => ({ ...rest, phases: [phase] }) as Configuration) : []),
    ...Object.keys(one)
      .filter((name) => !NO_FEATURE.test(name))
      .map((name) => ({ ...one, [name]: undefined })),
    ...Object.keys(one.options)
      .filter((name) => name !== "lr")
      .map((name) => ({ ...one, options: { ...one.options, [name]: undefined } })),
    ...(one.optimizer === "SGD" ? [] : [{ ...one, optimizer: "SGD", options: { lr: 0.01 } }]),
    ...(phases.length > 1 && one.through !== "checkpoint" ? [{ ...one, through: "checkpoint" as const }] : []),
    ...(one.stepsPerEpoch > 2 && (one.break ?? 0) < 4 ? [{ ...one, stepsPerEpoch: 2 }] : []),
    ...(one.model === "mlp" ? [] : [{ ...one, model: "mlp" as const, counted: undefined, sparse: undefined }]),
    ...phases.flatMap((phase, i) => [
      ...(phase.over === "alone" ? [] : [withPhase(i, { over: "alone", data: 1, model: 1, ...whole })]),
      ...(phase.shardOver ? [withPhase(i, { shardOver: undefined })] : []),
      ...(phase.units ? [withPhase(i, { units: undefined })] : []),
      ...(phase.model > 1 ? [withPhase(i, { model: 1 })] : []),
      ...(phase.data > 2 ? [withPhase(i, { data: 2, accumulate: 1, shardOver: undefined })] : []),
      ...(phase.accumulate > 1 ? [withPhase(i, { accumulate: 1 })] : []),
      ...(phase.way === "worker" ? [withPhase(i, { way: "fit" })] : []),
      ...(phase.way === "eager" ? [] : [withPhase(i, { way: "eager" })]),
      ...(phase.device === "js" ? [] : [withPhase(i, { device: "js" })]),
    ]),
  ];
  return candidates.filter(isWhole).map((each) => JSON.parse(JSON.stringify(each)));
}

/** Only `fit` takes losses of sums, and a last step of fewer samples, saves in each step or without a base, and measures. */
const isWhole = ({ phases, rest, counted, killed, trainable, throws, uneven, validated }: Configuration) =>
  (rest ?? counted ?? killed ?? trainable ?? throws ?? uneven ?? validated) === undefined || phases.every(isFit);

/**
 * @param firstThatFails of a list, or undefined
 */
export async function smallest(
  one: Configuration,
  firstThatFails: (list: readonly Configuration[]) => Promise<Configuration | undefined>,
): Promise<Configuration> {
  for (let least = one; ; ) {
    const next = await firstThatFails(smaller(least));
    if (next === undefined) return least;
    least = next;
  }
}

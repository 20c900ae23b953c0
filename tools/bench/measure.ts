/** Measures contenders on one work: results are compared first, then rounds are interleaved. */
import type { Contender, Costs, Session } from "./contender";

export interface Measurement {
  readonly name: string;
  /** Milliseconds per step: median and quartiles over rounds. */
  readonly median: number;
  readonly quartiles: readonly [number, number];
  readonly costs?: Costs;
}

export interface WorkReport<Work> {
  readonly work: Work;
  readonly measurements: Measurement[];
  readonly absent: { name: string; reason: string }[];
}

const CHECKED_STEPS = 3;
/** Engines compile on the way: what is measured is training, which goes on for longer than that. */
const WARM_MILLISECONDS = 400;
const CHECKED_VALUES = 64;
/** A round of one contender lasts about so long, so that small works are not measured by the clock's grain. */
const ROUND_MILLISECONDS = 25;

export async function measure<Work>(
  work: Work,
  contenders: readonly Contender<Work>[],
  rounds: number,
): Promise<WorkReport<Work>> {
  const open: { contender: Contender<Work>; session: Session; steps: number; times: number[] }[] = [];
  const absent: { name: string; reason: string }[] = [];
  for (const contender of contenders) {
    const session = await contender.open(work);
    if (typeof session === "string") absent.push({ name: contender.name, reason: session });
    else open.push({ contender, session, steps: 1, times: [] });
  }
  for (const [entry, reason] of await check(open)) {
    open.splice(open.indexOf(entry), 1);
    absent.push({ name: entry.contender.name, reason });
    await entry.session.close();
  }
  for (const entry of open) {
    const end = performance.now() + WARM_MILLISECONDS;
    let perStep = Number.POSITIVE_INFINITY; // the shortest: who was held up in the last steps would have short rounds
    do perStep = Math.min(perStep, (await entry.session.run(2)) / 2);
    while (performance.now() < end);
    entry.steps = Math.max(1, Math.round(ROUND_MILLISECONDS / Math.max(perStep, 1e-3)));
  }
  for (let round = 0; round < rounds; round++) {
    for (const { session, steps, times } of open) {
      await new Promise((resolve) => setTimeout(resolve, 20)); // other runtimes' threads spin for a while after their work
      times.push((await session.run(steps)) / steps);
    }
  }
  for (const { session } of open) await session.close();
  return {
    work,
    measurements: open.map(({ contender, session, times }) => summary(contender.name, times, session.costs)),
    absent,
  };
}

/** Those whose first steps fail, and why. @throws Error for results that differ */
async function check<
  Entry extends { readonly contender: Pick<Contender, "name" | "tolerance">; readonly session: Session },
>(open: readonly Entry[]): Promise<Map<Entry, string>> {
  const failed = new Map<Entry, string>();
  let reference: number[] | undefined;
  for (const entry of open) {
    const { contender, session } = entry;
    try {
      for (let step = 0; step < CHECKED_STEPS; step++) await session.run(1); // the first alone: what it costs is a figure of its own
    } catch (error) {
      failed.set(entry, (error as Error).message);
      continue;
    }
    if (contender.tolerance === null) continue;
    const values = await session.result(CHECKED_VALUES);
    reference ??= values;
    values.forEach((value, i) => {
      const expected = reference![i]!;
      if (!(Math.abs(value - expected) <= contender.tolerance! * Math.abs(expected))) {
        throw new Error(`${contender.name} computes ${value} for value ${i}, the first contender ${expected}`);
      }
    });
  }
  return failed;
}

/** The value below which a fraction of all are. */
function quantile(values: readonly number[], fraction: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(fraction * (values.length - 1))] ?? Number.NaN;
}

export const median = (values: readonly number[]) => quantile(values, 0.5);

const summary = (name: string, times: readonly number[], costs?: Costs): Measurement => ({
  name,
  median: median(times),
  quartiles: [quantile(times, 0.25), quantile(times, 0.75)],
  costs,
});

/** Steps in compiled functions: what each run does beside the launches. */
import type { Scalar } from "../backend/memory";
import { afterEachRun, dependsOn } from "../device/host-code";
import type { ScalarSource } from "../device/scalar-source";
import { activeTracer, openTracer } from "../device/tracer";
import { check } from "../errors/errors";
import type { BaseOptions } from "./algorithm";
import type { PlannedLaunch } from "./plan";
import { isInSync, markInSync, syncMasters } from "./state/master";
import type { Slot } from "./state/state";

/** A launch whose scalars each run computes again. */
class TracedLaunch<Options extends BaseOptions> implements ScalarSource {
  constructor(
    private readonly launch: PlannedLaunch<Options>,
    /** Their parameters are as others left them when the function begins. */
    private readonly masters: readonly Slot[],
    private readonly isPlanned: () => boolean,
  ) {}

  next(): readonly Scalar[] {
    check(
      this.isPlanned(),
      "CHANGED",
      this.launch.algorithm.name,
      () => "a hook has changed what the compiled step depends on.",
      "Change it outside of the function.",
    );
    syncMasters(this.masters);
    return this.launch.next();
  }

  commit(): void {
    this.launch.commit();
  }
}

/**
 * What computes the scalars of a step's launches in each run. Called before the first launch.
 *
 * @param isPlanned false if a step now needs another plan
 * @throws OptError UNSUPPORTED for two devices in a compiled function
 */
export function scalarSourcesOf<Options extends BaseOptions>(
  launches: readonly PlannedLaunch<Options>[],
  isPlanned: () => boolean,
): readonly ScalarSource[] {
  const tracer = activeTracer();
  if (tracer === null) return launches;
  for (const { device } of launches) tracer.launches(device);
  keepInSync(launches.flatMap(({ masters }) => masters));
  const found = ({ param }: Slot) => !tracer.overwrites(param.storage);
  return launches.map((launch) => new TracedLaunch(launch, launch.masters.filter(found), isPlanned));
}

/** At the end of each run master weights are in sync, unless the function overwrites their parameters after the step. */
function keepInSync(masters: readonly Slot[]): void {
  if (masters.length === 0) return;
  let unchanged: readonly Slot[] | undefined;
  dependsOn(() => {
    // Asked for the first time when the trace is complete.
    if (openTracer() === null) unchanged ??= masters.filter(isInSync);
    return true;
  });
  afterEachRun(() => {
    for (const slot of unchanged ?? []) markInSync(slot);
  });
}

/** What is done to a trace before it runs. Each pass keeps every bit. */
import type { Memory } from "../../backend/memory";
import type { Device } from "../../device/device";
import { checkValue } from "../../errors/check-value";
import type { Step } from "../steps";
import { carriedPasses } from "./carried-passes";
import { removeCopies } from "./copies";
import { withoutDead } from "./dead";
import { fitMemory } from "./fit-memory";
import { fuseEpilogues } from "./fuse-epilogues";
import { fuseMaps, type MapKernels } from "./fuse-maps";
import { fuseSums } from "./fuse-sums";
import type { OptimizedTrace } from "./memory-plan";
import { splitPadded } from "./split-padded";
import { Uses } from "./uses";

export * as messages from "../messages";
export { Waiting } from "../waiting";

/** Of "500MB", or a number. KB is 1000 bytes, KiB 1024. @throws OptError BAD_ARGUMENT */
export function bytesOf(memory: number | string | undefined): number {
  if (memory === undefined) return Number.POSITIVE_INFINITY;
  const [, number, unit, i] = /^([\d.]+) ?([KMGT]?)(i?)B$/.exec(`${memory}`) ?? [];
  const power = "_KMGT".indexOf(unit || "_");
  const bytes = typeof memory === "number" ? memory : Math.floor(Number(number) * (i ? 1024 : 1000) ** power);
  checkValue(bytes > 0, "compile", "memory", 'a number of bytes, or a text such as "500MB"', memory);
  return bytes;
}

/** @throws OptError BAD_ARGUMENT where temporaries do not fit */
export function checkFit(arenaBytes: number, memory: number | string | undefined): void {
  checkValue(
    arenaBytes <= bytesOf(memory),
    "compile",
    "memory",
    `at least ${arenaBytes} bytes for this function`,
    memory,
    "Allow more, use smaller batches, or wrap blocks of the model in recompute().",
  );
}

/**
 * @param temporaries memory that nobody sees before or after
 * @param memory most bytes of temporaries: what is cheap is computed again in place of being kept
 */
export function optimized(
  given: readonly Step[],
  temporaries: ReadonlySet<Memory>,
  device: Device,
  memory: number | string | undefined,
): OptimizedTrace {
  const kernels: MapKernels = (program, dtype) => device.kernel({ kind: "map", program, dtype });
  let uses = new Uses(withoutDead(given, temporaries), temporaries);
  removeCopies(uses);
  fuseMaps(uses, kernels);
  uses = new Uses(splitPadded(uses, kernels), temporaries);
  for (const pass of carriedPasses()) pass(uses, device);
  if (device.backend.epilogues) {
    fuseEpilogues(uses, (spec) => device.kernel(spec));
    fuseSums(uses, (spec) => device.kernel(spec));
  }
  return fitMemory(uses.steps, temporaries, bytesOf(memory), kernels);
}

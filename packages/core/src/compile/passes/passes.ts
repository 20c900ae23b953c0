/** What is done to a trace before it runs. Each pass keeps every bit. */
import type { Memory } from "../../backend/memory";
import type { Device } from "../../device/device";
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

/**
 * @param temporaries memory that nobody sees before or after
 * @param budget of the bytes of temporaries: what is cheap is computed again in place of being kept
 */
export function optimized(
  given: readonly Step[],
  temporaries: ReadonlySet<Memory>,
  device: Device,
  budget = Number.POSITIVE_INFINITY,
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
  return fitMemory(uses.steps, temporaries, budget, kernels);
}

/** What is done to a trace before it runs. Each pass keeps every bit. */
import type { Memory } from "../../backend/memory";
import type { Device } from "../../device/device";
import type { Step } from "../steps";
import { carriedPasses } from "./carried-passes";
import { removeCopies } from "./copies";
import { withoutDead } from "./dead";
import { fuseEpilogues } from "./fuse-epilogues";
import { fuseMaps, type MapKernels } from "./fuse-maps";
import { fuseSums } from "./fuse-sums";
import { plan } from "./memory-plan";
import { splitPadded } from "./split-padded";
import { Uses } from "./uses";

export interface OptimizedTrace {
  readonly steps: readonly Step[];
  /** Where temporaries are in one block of memory. */
  readonly offsets: ReadonlyMap<Memory, number>;
  readonly arenaBytes: number;
}

/** @param temporaries memory that nobody sees before or after */
export function optimized(given: readonly Step[], temporaries: ReadonlySet<Memory>, device: Device): OptimizedTrace {
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
  const { steps } = uses;
  return { steps, ...plan(steps, temporaries, true) };
}

/** Launches whose results nobody reads fall out. */
import { readsOf, writesOf } from "../../backend/launches";
import type { Memory } from "../../backend/memory";
import type { Step } from "../steps";

export function withoutDead(steps: readonly Step[], temporaries: ReadonlySet<Memory>): Step[] {
  const needed = new Set<Memory>();
  const kept: Step[] = [];
  for (const step of steps.toReversed()) {
    if (step.kind === "launch") {
      const isNeeded = [...writesOf(step.launch)].some((memory) => !temporaries.has(memory) || needed.has(memory));
      if (!isNeeded) continue;
      for (const memory of readsOf(step.launch)) needed.add(memory);
    } else if (step.kind === "host") for (const { memory } of step.views) needed.add(memory);
    else if (step.isConstant && temporaries.has(step.slice.memory) && !needed.has(step.slice.memory)) continue;
    kept.push(step); // random numbers are drawn whoever reads them: the generator goes on
  }
  return kept.reverse();
}

/** The planner: from the boxes that files hold to the boxes that ranks want. Pure: it never sees a byte. */
import { OptError } from "@opt/core";
import { type Box, describeBox, elementsIn, elementsShared, fits, subtract } from "../layout/box";
import { BoxIndex } from "./box-index";

export interface PlannedTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** The boxes of one tensor, checked once (inside the shape, disjoint) and ready to be searched. */
export class SourcePlan {
  readonly #tensor: PlannedTensor;
  readonly #boxes: readonly Box[];
  readonly #index: BoxIndex;
  readonly #isComplete: boolean;

  /** @throws OptError CORRUPT if a box leaves the tensor or two boxes overlap, naming the tensor and the boxes */
  constructor(tensor: PlannedTensor, boxes: readonly Box[]) {
    this.#tensor = tensor;
    this.#boxes = boxes;
    let elements = 0;
    for (const box of boxes) {
      if (!fits(box, tensor.shape))
        this.#fail("CORRUPT", `box ${describeBox(box)} leaves the tensor [${tensor.shape}].`);
      elements += elementsIn(box);
    }
    this.#index = new BoxIndex(boxes);
    const [a, b] = this.#index.overlap()?.map((id) => describeBox(boxes[id]!)) ?? [];
    if (a !== undefined) this.#fail("CORRUPT", `boxes must not overlap, got ${a} and ${b}.`);
    // They are inside the shape and disjoint: counting proves that nothing is missing.
    this.#isComplete = elements === elementsIn({ offset: [], size: tensor.shape });
  }

  #fail(code: "CORRUPT" | "MISSING", problem: string): never {
    const advice = "The checkpoint is incomplete or damaged: restore its files, or use another step.";
    throw new OptError(code, `tensor ${JSON.stringify(this.#tensor.name)}`, problem, advice);
  }

  /** The source boxes, ascending, that together fill `target`. @throws OptError MISSING, listing the boxes that nothing holds */
  sourcesOf(target: Box): number[] {
    const sources = this.#index.touching(target);
    if (this.#isComplete && fits(target, this.#tensor.shape)) return sources;
    let found = 0;
    for (const source of sources) found += elementsShared(this.#boxes[source]!, target);
    if (found !== elementsIn(target)) this.#rejectGap(target, sources);
    return sources;
  }

  #rejectGap(target: Box, sources: readonly number[]): never {
    const missing = subtract(
      target,
      sources.map((source) => this.#boxes[source]!),
    );
    const shown = missing.slice(0, 4).map(describeBox).join(", ");
    const more = missing.length > 4 ? ` and ${missing.length - 4} more` : "";
    this.#fail("MISSING", `${describeBox(target)} is wanted, nothing holds ${shown}${more}.`);
  }
}

/** Plans one tensor: for each target box the source boxes that fill it; what each gives is their intersection. */
export function planTensor(tensor: PlannedTensor, sources: readonly Box[], targets: readonly Box[]): number[][] {
  const plan = new SourcePlan(tensor, sources);
  return targets.map((target) => plan.sourcesOf(target));
}

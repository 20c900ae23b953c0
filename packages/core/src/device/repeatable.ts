/** Whether what runs now is being recorded. What a replay could not repeat asks here, and is refused. */
import { check } from "../errors/errors";
import { shared } from "../host/shared";

const state = /* @__PURE__ */ shared("recording", () => ({ isRecorded: false }));

/** @internal The recorder says when. */
export function setRecorded(value: boolean): void {
  state.isRecorded = value;
}

/** Refuses what `device.record` could not repeat; `what` says it. @throws OptError UNSUPPORTED while a step is being recorded */
export function checkRepeatable(where: string, what: string): void {
  check(
    !state.isRecorded,
    "UNSUPPORTED",
    where,
    () => `a replay would not repeat ${what}, got it inside a recorded step.`,
    "Do it before or after device.record.",
  );
}

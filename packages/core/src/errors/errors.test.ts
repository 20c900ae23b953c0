import { expect, it } from "vitest";
import { OptError } from "./errors";

it("an error keeps its cause, and its words end with the advice", () => {
  const cause = new RangeError("too long");
  const error = new OptError("OUT_OF_MEMORY", "room", "no room for 2 numbers.", "Make parts.", { cause });
  expect([error.message, error.cause, error.code, error.where]).toEqual([
    "[room] no room for 2 numbers. Make parts.",
    cause,
    "OUT_OF_MEMORY",
    "room",
  ]);
  expect("cause" in new OptError("IO", "room", "closed.")).toBe(false);
});

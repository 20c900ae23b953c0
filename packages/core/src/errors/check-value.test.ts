import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { checkValue } from "./check-value";

it("passes what holds, with and without advice", () => {
  expect(() => checkValue(true, "run", "lr", "above 0", 1)).not.toThrow();
  expect(() => checkValue(true, "run", "lr", "above 0", 1, "The default is 0.1.")).not.toThrow();
});

it("says what must be, what was given and what to do", () => {
  expect(() => checkValue(false, "run", "lr", "above 0", -1, "The default is 0.1.")).toThrow(
    "[run] lr must be above 0, got -1. The default is 0.1.",
  );
  expectCode("BAD_ARGUMENT", () => checkValue(false, "run", "lr", "above 0", -1));
});

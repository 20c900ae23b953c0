// Errors say what was given, and what helps.
import { expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { parameter } from "../create";
import { StepLR } from "../schedules";

const optimizer = (options = {}) => new Momentum([parameter([1])], options);
const loosely = (given: unknown) => given as never;

it.each<[string, () => unknown, RegExp]>([
  ["a string for a count", () => new StepLR(optimizer(), { stepSize: loosely("5") }), /got "5"/],
  ["a string for the rate", () => optimizer({ lr: "0.1" }), /got "0.1"\. Pass a number from 0 on/],
  ["a rate below 0", () => optimizer({ lr: -1 }), /got -1\. Pass a number from 0 on/],
  [
    "a format that is not enabled",
    () => optimizer({ stateDType: "q8" }),
    /or, after enableQ8\(\), "bf16x" or "q8", got "q8"/,
  ],
  ["a symbol for an event", () => optimizer().on(loosely(Symbol("x")), () => {}), /got Symbol\(x\)/],
  [
    "a group that was pushed",
    () => {
      const one = optimizer();
      (one.groups as unknown[]).push({ params: [parameter([2])], lr: 1 });
      one.step();
    },
    /must come by addGroup/,
  ],
])("%s", (_, run, message) => {
  expect(run).toThrow(message);
  expect(run).toThrow(expect.objectContaining({ code: expect.stringMatching(/BAD_ARGUMENT|BAD_STATE/) }));
});

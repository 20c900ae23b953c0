import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import type { OptError } from "../errors/errors";
import { checkBetas, checkBoolean, checkNotNegative } from "./check";
import { l1, l2 } from "./gradients/regularizer";

const accepts = (body: () => unknown) => expect(body).not.toThrow();

describe("checkNotNegative", () => {
  it.each([0, -0, 1e-300, 1, Number.POSITIVE_INFINITY])("takes %d", (value) =>
    accepts(() => checkNotNegative("Test", "x", value)),
  );
  it.each([-1e-300, Number.NaN, Number.NEGATIVE_INFINITY, "1", null, undefined, [1], true])("rejects %j", (value) =>
    expectCode("BAD_ARGUMENT", () => checkNotNegative("Test", "x", value)),
  );
});

describe("checkBetas", () => {
  it.each([[[0, 0]], [[0.9, 0.999]], [[1 - 2 ** -53, 0]]])("takes %j", (betas) =>
    accepts(() => checkBetas("Test", betas)),
  );
  it.each([
    [[1, 0]],
    [[0, 1]],
    [[-0.1, 0]],
    [[0, -1e-300]],
    [[0.9]],
    [[0.9, 0.9, 0.9]],
    [["0.9", 0]],
    [[0, null]],
    [[Number.NaN, 0]],
    [0.9],
    ["ab"],
    [null],
    [undefined],
    [{ length: 2 }],
  ])("rejects %j", (betas) => expectCode("BAD_ARGUMENT", () => checkBetas("Test", betas)));

  it("takes as many as there are defaults", () => {
    const defaults = [0.9, 0.999, 0.9999];
    accepts(() => checkBetas("Test", [0, 0.5, 0.9], defaults));
    expect(() => checkBetas("Test", [0.9, 0.999], defaults)).toThrow(
      "[Test] betas must be 3 numbers, got [0.9, 0.999]. The default is [0.9, 0.999, 0.9999].",
    );
  });
});

describe("checkBoolean", () => {
  it.each([true, false])("takes %j", (value) => accepts(() => checkBoolean("Test", "x", value)));
  it.each([0, 1, "true", null, undefined])("rejects %j", (value) =>
    expectCode("BAD_ARGUMENT", () => checkBoolean("Test", "x", value)),
  );
});

describe("l1 and l2", () => {
  it("take a coefficient from 0 on", () => {
    expect([l1(0), l2(0.5)]).toEqual([
      { kind: "l1", coefficient: 0 },
      { kind: "l2", coefficient: 0.5 },
    ]);
  });
});

it("a rejection names who rejects, the option, and the value", () => {
  try {
    checkNotNegative("Adam", "eps", Number.NaN);
  } catch (error) {
    expect((error as OptError).where).toBe("Adam");
    expect((error as OptError).message).toMatch(/^\[Adam\] eps must .* got NaN\./);
  }
  expect.assertions(2);
});

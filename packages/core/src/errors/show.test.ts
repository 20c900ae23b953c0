import { describe, expect, it } from "vitest";
import { isPlainObject, show } from "./show";

const circle: unknown[] = [];
circle.push(circle, 1n);

describe("show writes", () => {
  it.each<[unknown, string]>([
    [undefined, "undefined"],
    [null, "null"],
    [Number.NaN, "NaN"],
    [1n, "1n"],
    [Symbol("s"), "Symbol(s)"],
    ["a\n", '"a\\n"'],
    [() => 1, "a function"],
    [[1, "a", [2]], '[1, "a", [...]]'],
    [circle, "[[...], 1n]"],
    [{}, "{}"],
    [{ lr: 1, betas: 2 }, "{ lr, betas }"],
    [new Map(), "a Map"],
    [{ [Symbol.for("@opt/core.tensor")]: true }, "a Tensor"],
    [{ [Symbol.for("@opt/core.operate")]: true }, "an Expression"],
    [Object.create({ constructor: undefined }), "a nameless object"],
    ["x".repeat(99), `"${"x".repeat(39)}...`],
  ])("%#", (value, text) => expect(show(value)).toBe(text));
});

it("plain objects are what braces make", () => {
  expect([{}, Object.create(null)].map(isPlainObject)).toEqual([true, true]);
  expect([null, [], new Map(), 1, () => 1].map(isPlainObject)).toEqual([false, false, false, false, false]);
});

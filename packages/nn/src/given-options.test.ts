// What layers and functions are given: an option of 0 is not one that is left out, and objects may change afterwards.
import { init, manualSeed, rand, Tensor } from "@opt/core";
import { jumpsAtZero, spoil } from "@opt/testkit";
import { expect, it } from "vitest";
import { FUNCTIONS, LAYERS } from "../testing/valid-arguments";
import * as nn from "./index";

await init("js");

// biome-ignore lint/suspicious/noExplicitAny: any layer
type Any = any;

/** From -1 to 1, in the place of tensors of floats. */
const drawn = (given: readonly unknown[]) =>
  given.map((x) => (x instanceof Tensor && x.dtype === "f32" ? rand(x.shape).mul(2).sub(1) : x));

const layerOf = (name: string, args: readonly unknown[]) => new (nn as Any)[name](...args);
const tensorsIn = (value: unknown): Tensor[] =>
  value instanceof Tensor ? [value] : Array.isArray(value) ? value.flatMap(tensorsIn) : [];
/** Layers draw their weights, and functions what they drop, after the same seed. */
const seeded = <Result>(body: () => Result): Result => {
  manualSeed(42); // of whose first numbers some are above 0 and some below
  return body();
};

/** With lists of two or three in the place of each number that may be one. */
function inLists(name: string, args: readonly unknown[], given: () => unknown[]): unknown[] {
  const all = [...args];
  const options = all.findIndex((value) => Object.getPrototypeOf(Object(value)) === Object.prototype);
  const places: [Any, string][] = [
    ...all.map((_, i): [Any, string] => [all, String(i)]),
    ...Object.keys(all[options] ?? {}).map((key): [Any, string] => [all[options], key]),
  ];
  for (const [of, key] of places.filter(([of, key]) => typeof of[key] === "number")) {
    const number = of[key];
    const fits = [2, 3].some((count) => {
      of[key] = new Array(count).fill(number);
      try {
        return layerOf(name, all).forward(...given());
      } catch {
        return false;
      }
    });
    if (!fits) of[key] = number;
  }
  return all;
}

it.each(Object.entries(LAYERS))("%s keeps nothing of the objects that it was given", (name, [made, given]) => {
  for (const makes of [made, () => inLists(name, made(), given)]) {
    const outcome = (change: (args: unknown) => void) => {
      const args = makes();
      return seeded(() => {
        const layer = layerOf(name, args);
        change(args);
        const results = tensorsIn(layer.forward(...drawn(given())));
        return [layer.describe(), results.map((x) => x.tolist())];
      });
    };
    expect(outcome(spoil)).toEqual(outcome(() => {}));
  }
});

/** Layers of which a tensor among the options becomes a property, which may be null. */
const WEIGHTED = Object.entries(LAYERS).flatMap(([name, [made, given]]) => {
  const tensors = Object.entries(Object(made()[0]) as object).filter(([, value]) => value instanceof Tensor);
  return tensors.map(([option]) => [name, option, made, given] as const);
});

it.each(WEIGHTED)("%s of which %s is set to null is as without it", (name, option, made, given) => {
  const property = option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const taken = layerOf(name, made());
  expect(taken[property]).toBeInstanceOf(Tensor);
  taken[property] = null;
  const without = layerOf(name, [{ ...(made()[0] as object), [option]: undefined }]);
  const [one, other] = [taken, without].map((layer) => seeded(() => layer.forward(...drawn(given())).tolist()));
  expect(one).toEqual(other);
});

/** That number counts what is not 0, this one is rounded up. */
const JUMPS = /^(p|sparsity) of/;

it.each(Object.entries(LAYERS))("%s takes 0 for 0", (name, [made, given]) => {
  const call = (...args: unknown[]) => seeded(() => layerOf(name, args).forward(...drawn(given())));
  expect(jumpsAtZero(call, made).filter((place) => !JUMPS.test(place))).toEqual([]);
});

it.each(Object.entries(FUNCTIONS))("%s takes 0 for 0", (name, valid) => {
  const call = (...args: unknown[]) => seeded(() => (nn as Any)[name](...drawn(args)));
  expect(jumpsAtZero(call, valid).filter((place) => !JUMPS.test(place))).toEqual([]);
});

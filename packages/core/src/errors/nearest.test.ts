import { expect, it } from "vitest";
import { nearest } from "./nearest";

it("names are ranked by what must be put in, taken out or replaced", () => {
  expect(nearest("wieght", ["bias", "weight", "height"], 2)).toEqual(["weight", "height"]);
  expect(nearest("abc", [], 2)).toEqual([]);
});

it("part of a name may be compared", () => {
  const names = ["block.0.bias", "other.weights"];
  expect(nearest("weight", names, 1, (name) => name.split(".").at(-1)!)).toEqual(["other.weights"]);
});

// Lists of layers: read by position, cut, and put into one another.
import { Generator, rand } from "@opt/core";
import { expect, it } from "vitest";
import { Linear, ModuleList, ReLU, Sequential } from "../../index";

const body = () => new Sequential(new Linear(3, 4, { generator: new Generator(1) }), new ReLU(), new Linear(4, 2));

it("Sequential is read by position, from both ends", () => {
  const model = body();
  expect(model.length).toBe(3);
  expect(model.at(-1)).toBe([...model][2]);
  expect(model.at(1)).toBeInstanceOf(ReLU);
  expect(model.at(3)).toBeUndefined();
});

it("Sequential is cut into models that share its layers", () => {
  const model = body();
  const features = model.slice(0, -1);
  expect([...features]).toEqual([model.at(0), model.at(1)]);
  expect(Object.keys(model.slice(2).stateDict())).toEqual(["0.weight", "0.bias"]);
  const x = rand([2, 3]);
  expect(model.slice(2).forward(features.forward(x)).tolist()).toEqual(model.forward(x).tolist());
});

it("Sequential takes the layers of another one", () => {
  const tuned = new Sequential(...body().slice(0, -1), new Linear(4, 5));
  expect(tuned.forward(rand([2, 3])).shape).toEqual([2, 5]);
});

it("ModuleList is cut, too", () => {
  const list = new ModuleList([...body()]);
  expect([...list.slice(1)]).toEqual([list.at(1), list.at(2)]);
  expect([...list.slice(0, 1)]).toEqual([list.at(0)]);
});

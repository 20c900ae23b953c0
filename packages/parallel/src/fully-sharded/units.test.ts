import { Linear, Module, ModuleDict, ModuleList, Sequential } from "@opt/nn";
import { expect, it } from "vitest";
import { unitsOf } from "./units";

it("layers are units however deep the lists are that hold them, and no list is one", () => {
  const [a, b, c, d, e] = Array.from({ length: 5 }, () => new Linear(1, 1)) as [Linear, Linear, Linear, Linear, Linear];
  class Model extends Module {
    readonly lists = new ModuleList<Module>([new ModuleList([a, new ModuleList([b])]), new Sequential(c)]);
    readonly named = new ModuleDict({ d: new ModuleList([d]) });
    readonly last = e;
    override forward = (): never => expect.unreachable();
  }
  expect(unitsOf(new Model())).toEqual([a, b, c, d, e]);
});

// Groups whose parameters somebody changed by hand: their state and launches are not those of the new ones.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter } from "../create";
import type { Tensor } from "../tensor/tensor";

it.each<[string, (groups: Momentum["groups"][number][], params: Tensor[]) => void]>([
  ["a group that others came before is left out", (groups) => groups.shift()],
  ["groups changed places", (groups) => groups.reverse()],
  ["a parameter was replaced", (_, params) => params.splice(0, 1, parameter([1]))],
  ["all were", (groups) => Object.assign(groups[0]!, { params: [parameter([1])] })],
  ["one was added", (_, params) => params.push(parameter([1]))],
  ["a group was", (groups) => groups.push({ ...groups[0]!, params: [parameter([1])] })],
])("will not step, eager and compiled, where %s by hand", (_, change) => {
  const [a, b] = [parameter([1]), parameter([2])];
  const optimizer = new Momentum([{ params: [a] }, { params: [b] }], { lr: 0.5 });
  const step = () => {
    optimizer.zeroGrad();
    a.mul(b).sum().backward();
    optimizer.step();
  };
  const compiled = compile(step);
  for (let i = 0; i < 3; i++) compiled();
  const before = [a, b].map((x) => x.tolist());
  change(optimizer.groups as never, optimizer.groups[0]!.params as never);
  for (const call of [() => optimizer.step(), compiled]) expectCode("BAD_STATE", call);
  expect([a, b].map((x) => x.tolist())).toEqual(before);
});

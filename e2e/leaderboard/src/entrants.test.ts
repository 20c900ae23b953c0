/** Every optimizer of the workspace enters, also one that is new. */
import { init } from "@opt/core";
import { workspaceOptimizers } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";
import { entrants, takenBy } from "./entrants";

it("has every class of every optimizer's package", async () => {
  const names = (await workspaceOptimizers()).map(({ name }) => name);
  expect(entrants.map(({ name }) => name)).toEqual(expect.arrayContaining([...names, "LBFGS"]));
});

it("asks a class which parameters it takes", async () => {
  await init("js");
  const taken = Object.fromEntries(entrants.map((each) => [each.name, takenBy(each)]));
  expect(taken).toMatchObject({ Adam: "all", LBFGS: "all", Muon: "matrices", SOAP: "all", SparseAdam: "tables" });
});

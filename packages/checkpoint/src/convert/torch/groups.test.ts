// The groups that our optimizers write into a .pt have the values and Python types of PyTorch's: `ns_steps` is an int, rates are floats.
import { Adadelta } from "@opt/adadelta";
import { Adafactor } from "@opt/adafactor";
import { Adagrad } from "@opt/adagrad";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { ASGD } from "@opt/asgd";
import { type OptimizerState, type Parameters, parameter } from "@opt/core";
import { LBFGS } from "@opt/lbfgs";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { Rprop } from "@opt/rprop";
import { SGD } from "@opt/sgd";
import { beforeAll, describe, expect, it } from "vitest";
import { torchFile } from "../../../testing/files/torch-files";
import { dictOf, itemsOf, type PythonTree } from "../../formats/python/tree";
import { openForeign } from "../../formats/registry";
import { ourOption } from "../../formats/torch/names";
import { convertCheckpoint, type FileSystem, memoryFileSystem, optimizerContents, saveCheckpoint } from "../../index";
import { localFileSystem } from "../../platform/local";

const KINDS = {
  ...{ Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, ASGD },
  ...{ LBFGS, Muon, NAdam, RAdam, RMSprop, Rprop, SGD },
};
type Kind = keyof typeof KINDS;
/** As `PythonTree` has it: an int is a number, and a float that is whole is `{ float }`. */
type Group = Record<string, PythonTree>;

async function structureOf(path: string, fileSystem: FileSystem): Promise<PythonTree> {
  const source = await openForeign(path, fileSystem);
  await source.close();
  return source.structure as PythonTree;
}

const member = (tree: PythonTree | undefined, key: string) => dictOf(tree!)!.find(([name]) => name === key)?.[1];

function groupOf(optimizer: PythonTree | undefined): Group {
  const [group] = itemsOf(member(optimizer, "param_groups"))!;
  const { params: _, param_names: __, ...options } = Object.fromEntries(dictOf(group!)!) as Group;
  return options;
}

/** What a call of ours takes for an option of PyTorch's. */
function plainOf(tree: PythonTree): unknown {
  const items = itemsOf(tree);
  if (items !== undefined) return items.map(plainOf);
  return typeof tree === "object" && tree !== null && "float" in tree ? Number(tree.float) : tree;
}

let theirs: PythonTree;
beforeAll(async () => {
  theirs = await structureOf(torchFile("groups.pt"), localFileSystem);
});

/** The group that an optimizer of ours writes without a step, of options that are those of PyTorch's group. */
async function written(kind: Kind, given: Group): Promise<Group> {
  const w = parameter([0, 0, 0, 0], { shape: [2, 2] });
  const Optimizer = KINDS[kind] as unknown as new (
    params: Parameters,
    options: object,
  ) => { stateDict(): OptimizerState };
  const optimizer = new Optimizer([["w", w]], {});
  const state = optimizer.stateDict();
  const known = Object.keys(state.groups[0]!);
  const options = Object.entries(given)
    .map(([name, value]) => [ourOption(name), plainOf(value)] as const)
    .filter(([name, value]) => known.includes(name) && value !== null);
  const line = given.line_search_fn === "strong_wolfe" ? { lineSearch: "strongWolfe" } : {};
  const made = new Optimizer([["w", w]], { ...Object.fromEntries(options), ...line });
  const { tensors, values } = optimizerContents(made.stateDict());
  const fileSystem = memoryFileSystem();
  await saveCheckpoint("ours", { step: 0, tensors: { w, ...tensors }, values }, { fileSystem });
  await convertCheckpoint("ours", "ours.pt", { to: "pt", fileSystem });
  return groupOf(member(await structureOf("ours.pt", fileSystem), "optimizer"));
}

describe("a group is as PyTorch's", () => {
  it.each(Object.keys(KINDS) as Kind[])("%s", async (kind) => {
    const given = groupOf(member(theirs, kind));
    const ours = await written(kind, given);
    expect(Object.fromEntries(Object.keys(given).map((name) => [name, ours[name]]))).toEqual(given);
  });
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { floats, torchTensorCall, torchZip } from "../../../testing/files/made-files";
import { Tuple } from "../../../testing/files/pickles";
import { scratchFolder } from "../../../testing/fixtures";
import { readFloats } from "../../../testing/read-tensor";
import type { TensorSource } from "../../format/source";
import { openForeign } from "../../formats/registry";
import { loadCheckpoint, optimizerState, saveCheckpoint } from "../../index";
import { localFileSystem } from "../../platform/local";
import { openSource } from "../../read/open";
import { reshardCheckpoint } from "../../rewrite/reshard";
import { convertCheckpoint } from "../convert";
import { writeTorch } from "./write";

const scratch = scratchFolder();
const at = (name: string): string => join(scratch.path, name);

/** Storage n holds n only. */
const STORAGES = Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [n, floats(n, n, n, n)]));
const tensor = (storage: number, shape: number[]) => torchTensorCall(String(storage), shape);
const MODEL = { w: tensor(0, [2, 2]), s: tensor(1, []) };
const group = (options: object = { lr: 0.5 }) => [{ param_names: ["w", "s"], ...options, params: [0, 1] }];

function write(name: string, object: object): string {
  writeFileSync(at(name), torchZip(object, STORAGES));
  return at(name);
}

async function using<T>(source: Promise<TensorSource>, body: (source: TensorSource) => Promise<T> | T): Promise<T> {
  const opened = await source;
  try {
    return await body(opened);
  } finally {
    await opened.close();
  }
}

const read = <T>(path: string, body: (source: TensorSource) => Promise<T> | T) =>
  using(openForeign(path, localFileSystem), body);

/** What a file holds: how it is nested, and the numbers of its tensors by name. */
const all = (path: string) =>
  read(path, async (source) => {
    const numbers: Record<string, number[]> = {};
    for (const name of source.tensors.keys()) numbers[name] = await readFloats(source, name);
    return { structure: source.structure, numbers };
  });

/** To a checkpoint of ours, over three ranks, and back to PyTorch. */
async function thereAndBack(paths: string | string[], naming = {}): Promise<string> {
  await convertCheckpoint(paths, at("ours"), { to: "checkpoint", ...naming });
  await reshardCheckpoint(at("ours"), at("three"), { ranks: 3 });
  await convertCheckpoint(at("three"), at("back.pt"), { to: "pt" });
  return at("back.pt");
}

/** As torch 2.13's optimizers keep them. */
const STATES: Record<string, [w: object, s: object]> = {
  ASGD: [
    { step: tensor(2, []), eta: tensor(3, []), mu: tensor(4, []), ax: tensor(5, [2, 2]) },
    { step: tensor(2, []), eta: tensor(3, []), mu: tensor(4, []), ax: tensor(6, []) },
  ],
  "ASGD before tensors counted": [
    { step: 5, eta: 0.01, mu: 1, ax: tensor(5, [2, 2]) },
    { step: 5, eta: 0.01, mu: 1, ax: tensor(6, []) },
  ],
  Rprop: [
    { step: tensor(2, []), prev: tensor(3, [2, 2]), step_size: tensor(4, [2, 2]) },
    { step: tensor(2, []), prev: tensor(3, []), step_size: tensor(4, []) },
  ],
  Adafactor: [
    { step: tensor(2, []), row_var: tensor(3, [2, 1]), col_var: tensor(4, [1, 2]) },
    { step: tensor(2, []), variance: tensor(5, []) },
  ],
  "SGD whose momentum has not begun": [{ momentum_buffer: null }, { momentum_buffer: tensor(3, []) }],
};

describe("state of PyTorch optimizers of any kind comes back where it was", () => {
  const files = Object.entries(STATES).flatMap(([kind, [w, s]]): [string, object][] => {
    const state = new Map([
      [0, w],
      [1, s],
    ]);
    return [
      [`${kind}, with its model`, { model: MODEL, optimizer: { state, param_groups: group() } }],
      [`${kind}, alone`, { state, param_groups: group() }],
    ];
  });
  const lists = { n_iter: 3, al: [null, tensor(2, [])], old_dirs: [tensor(3, [3])], H_diag: tensor(4, []), t: 1.5 };
  const lbfgs = { state: new Map([[0, lists]]), param_groups: group() };
  const rates = { lr: tensor(2, []), betas: new Tuple(tensor(3, []), 0.5) };
  const rated = { state: new Map(), param_groups: group(rates) };
  it.each<[string, object]>([
    ...files,
    ["LBFGS, in lists", { model: MODEL, optimizer: lbfgs }],
    ["rates that are tensors", { model: MODEL, optimizer: rated }],
  ])("%s", async (_, object) => {
    const before = write("a.pt", object);
    expect(await all(await thereAndBack(before))).toEqual(await all(before));
  });

  it("from two files: each state is its parameter's, and none is the model's", async () => {
    const [w, s] = STATES.Adafactor!;
    const states = new Map([
      [0, w],
      [1, { ...s, eta: 0.25 }],
    ]);
    const two = [write("o.pt", { state: states, param_groups: group(rates) }), write("m.pt", MODEL)];
    const back = await all(await thereAndBack(two));
    const { structure, numbers } = back as { structure: { dict: [string, unknown][] }; numbers: object };
    expect(structure.dict.map(([key]) => key)).toEqual(["model", "optimizer", "step"]);
    expect(numbers).toEqual({
      "model.w": [0, 0, 0, 0],
      "model.s": [1],
      "optimizer.state.0.step": [2],
      "optimizer.state.0.row_var": [3, 3],
      "optimizer.state.0.col_var": [4, 4],
      "optimizer.state.1.step": [2],
      "optimizer.state.1.variance": [5],
      "optimizer.state.1.eta": [0.25],
    });
  });

  it("rates that are tensors are the groups' options here", async () => {
    const path = write("a.pt", { model: MODEL, optimizer: rated });
    await convertCheckpoint(path, at("ours"), { to: "checkpoint" });
    await using(openSource(at("ours")), ({ values }) => {
      expect(values.optimizer).toEqual({ groups: [{ params: ["w", "s"], lr: 2, betas: [3, 0.5] }], counters: {} });
    });
  });

  it("rates that changed here are no longer the file's", async () => {
    await convertCheckpoint(write("a.pt", { model: MODEL, optimizer: rated }), at("ours"), { to: "checkpoint" });
    await using(openSource(at("ours")), async (source) => {
      const { torch } = source.values;
      const optimizer = { groups: [{ params: ["w", "s"], lr: 0.125, betas: [3, 0.5] }], counters: {} };
      const now = { ...source, values: { torch: torch!, optimizer } };
      await writeTorch(now, at("now.pt"));
    });
    await read(at("now.pt"), ({ values, tensors }) => {
      expect(values["optimizer.param_groups.0.lr"]).toBe(0.125);
      expect([...tensors.keys()]).toEqual(["model.w", "model.s", "optimizer.param_groups.0.betas.0"]);
    });
  });

  it("what has no state yet does not get that of another model with such names", async () => {
    const state = new Map([[0, { exp_avg: tensor(2, [2, 2]) }]]);
    const param_groups = [{ param_names: ["w"], lr: 0.5, params: [0] }];
    const nets = { G: { w: tensor(0, [2, 2]) }, D: { w: tensor(1, [2, 2]), more: tensor(3, [4]) } };
    const second = new Map([...state, [1, { exp_avg: tensor(4, [4]) }]]);
    const ofBoth = [{ param_names: ["w", "more"], lr: 0.5, params: [0, 1] }];
    const object = { ...nets, optG: { state: new Map(), param_groups }, optD: { state: second, param_groups: ofBoth } };
    const before = write("a.pt", object);
    expect((await all(await thereAndBack(before))).numbers).toEqual((await all(before)).numbers);
  });

  it("a parameter without dimensions may be given state by a map", async () => {
    const state = new Map([
      [0, { exp_avg: tensor(2, [2, 2]) }],
      [1, { exp_avg: tensor(3, []) }],
    ]);
    const object = { model: MODEL, optimizer: { state, param_groups: [{ lr: 0.5, params: [0, 1] }] } };
    const map = { "optimizer.state.0": "w", "optimizer.state.1": "s" };
    const before = write("a.pt", object);
    expect(await all(await thereAndBack(before, { map }))).toEqual(await all(before));
  });
});

it("counters that float32 would round come back as they are", async () => {
  const counters = { w: { step: 3, weight_sum: 1 / 3 } };
  const values = { optimizer: { groups: [{ params: ["w"], lr: 0.5 }], counters } };
  const w = { dtype: "F32", shape: [1], data: Float32Array.of(1) } as const;
  await saveCheckpoint(at("counted"), {
    step: 3,
    tensors: { w, "w.z": { ...w, role: "state", follows: "w" } },
    values,
  });
  for (const to of ["pt", "dcp"] as const) {
    await convertCheckpoint(at("counted"), at(`counted.${to}`), { to });
    await convertCheckpoint(at(`counted.${to}`), at(`counted-${to}`), { to: "checkpoint" });
    const { state } = optimizerState(await loadCheckpoint(at(`counted-${to}`)));
    expect(state.w).toMatchObject(counters.w);
  }
});

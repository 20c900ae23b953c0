/** What a resume would miss, in plain sentences. */
import { AdamW } from "@opt/adam-amsgrad";
import { init, type OptimizerState, parameter, Tensor, tensor } from "@opt/core";
import { optimizerRuns } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { optimizerContents } from "../format/optimizer-state";
import { followedName } from "../format/tensors";
import { mergeCheckpoint } from "../rewrite/merge";
import { saveCheckpoint } from "../save/save";
import { memoryFileSystem } from "../stores/memory";
import { explainCheckpoint } from "./explain";

await init("js");
const folder = scratchFolder();
const AROUND = { schedule: { last_epoch: 2 }, scaler: { scale: 8 }, random: { state: "1" } };

/** A run of two steps of Adam; `change` is the fault. */
async function explained(
  change: (state: OptimizerState, weights: Record<string, Tensor>) => void = () => {},
  { amsgrad = false, values = AROUND as object } = {},
) {
  const weights: Record<string, Tensor> = { "a.weight": parameter([1, 2]), "a.bias": parameter([3]) };
  const optimizer = new AdamW(Object.entries(weights), { lr: 0.1, amsgrad });
  for (let step = 0; step < 2; step++) {
    for (const weight of Object.values(weights)) weight.grad = weight.detach().clone();
    optimizer.step();
  }
  const { groups, state } = optimizer.stateDict();
  const copy = { groups, state: Object.fromEntries(Object.entries(state).map(([name, own]) => [name, { ...own }])) };
  change(copy as OptimizerState, weights);
  const { tensors, values: counters } = optimizerContents(copy as OptimizerState);
  const fileSystem = memoryFileSystem();
  const contents = { step: 2, tensors: { ...weights, ...tensors }, values: { ...counters, ...values } as never };
  await saveCheckpoint("run", contents, { fileSystem });
  await mergeCheckpoint("run", "merged.safetensors", { fileSystem, outFileSystem: fileSystem });
  const result = await explainCheckpoint("run", { step: 2, fileSystem });
  const merged = await explainCheckpoint("merged.safetensors", { fileSystem });
  expect(merged.findings).toEqual(result.findings);
  const path = `${folder.path}/explained`;
  await saveCheckpoint(path, contents, { overwrite: true });
  const isLost = result.findings.some(({ kind }) => ["cold", "missing", "orphan"].includes(kind));
  expect((await run("explain", path)).code).toBe(Number(isLost));
  return result;
}

it("has nothing to say of a whole checkpoint", async () => {
  expect(await explained()).toMatchObject({ parameters: 2, stateful: 2, findings: [] });
  expect((await explained(undefined, { amsgrad: true })).findings).toEqual([]);
});

it.each(await optimizerRuns())("has nothing to say of $title, whose state is known by its name", async (run) => {
  const weights = {
    "a.weight": parameter([
      [1, 2],
      [3, 5],
    ]),
    "a.bias": parameter(run.name === "Muon" ? [[3, 4]] : [3, 4]),
  };
  const optimizer = new run.Optimizer(Object.entries(weights), run.options);
  for (let step = 0; step < 2; step++) {
    for (const weight of Object.values(weights)) weight.grad = weight.detach().clone();
    optimizer.step();
  }
  const saved = optimizerContents(optimizer.stateDict());
  const fileSystem = memoryFileSystem();
  const contents = { step: 2, tensors: { ...weights, ...saved.tensors }, values: { ...saved.values, ...AROUND } };
  await saveCheckpoint("run", contents as never, { fileSystem });
  expect((await explainCheckpoint("run", { fileSystem })).findings).toEqual([]);
  for (const [param, state] of Object.entries(optimizer.stateDict().state))
    for (const [key, value] of Object.entries(state)) {
      const names = [`${param}.${key}`, `${param}/${key}`, ...(/^exp_avg(_sq)?$/.test(key) ? [`${key}.${param}`] : [])];
      const found = names.map((name) => followedName(name, new Set([param])));
      if (value instanceof Tensor) expect([key, ...found]).toEqual([key, ...names.map(() => param)]);
    }
});

const zero = (x: unknown) => tensor((x as Tensor).shape[0] === 1 ? [0] : [0, 0]);

it.each<[string, Parameters<typeof explained>, string, string[], RegExp]>([
  [
    "no state",
    [(saved) => Object.assign(saved, { state: {} })],
    "cold",
    ["optimizer"],
    /no optimizer state: the optimizer begins cold/,
  ],
  [
    "zeros",
    [
      ({ state }) =>
        Object.assign(state["a.bias"]!, {
          exp_avg: zero(state["a.bias"]!.exp_avg),
          exp_avg_sq: zero(state["a.bias"]!.exp_avg_sq),
        }),
    ],
    "cold",
    ["a.bias"],
    /all zeros or of no step: a\.bias\./,
  ],
  ["step 0", [({ state }) => Object.assign(state["a.weight"]!, { step: 0 })], "cold", ["a.weight"], /cold/],
  [
    "a moment of one",
    [({ state }) => void delete state["a.bias"]!.exp_avg_sq],
    "missing",
    ["a.bias"],
    /^exp_avg_sq is missing/,
  ],
  [
    "a moment of all",
    [({ state }) => Object.values(state).forEach((own) => void delete own.exp_avg_sq)],
    "missing",
    ["a.bias", "a.weight"],
    /^exp_avg_sq is missing/,
  ],
  [
    "AMSGrad's moments",
    [({ state }) => Object.values(state).forEach((own) => void delete own.max_exp_avg_sq), { amsgrad: true }],
    "missing",
    ["a.bias", "a.weight"],
    /^max_exp_avg_sq is missing/,
  ],
  [
    "a parameter without state",
    [({ state }) => void delete state["a.bias"]],
    "stateless",
    ["a.bias"],
    /Frozen or never stepped/,
  ],
  [
    "state of no parameter",
    [(_, weights) => void delete weights["a.bias"]],
    "orphan",
    ["a.bias"],
    /follows no parameter: a\.bias/,
  ],
  [
    "counters that differ",
    [({ state }) => Object.assign(state["a.bias"]!, { step: 7 })],
    "steps",
    ["a.bias", "a.weight"],
    /differ: (2 \(a\.weight|7 \(a\.bias).*(2 \(a\.weight|7 \(a\.bias)/,
  ],
  [
    "what is around",
    [undefined, { values: { schedule: { last_epoch: 2 } } }],
    "absent",
    ["scaler", "generator"],
    /begins anew/,
  ],
])("says that %s is wrong", async (_, given, kind, names, text) => {
  const { findings } = await explained(...given);
  expect(findings.filter((each) => each.kind === kind)).toEqual([{ kind, names, text: expect.stringMatching(text) }]);
});

it("answers on the command line: exit 1 where state is lost", async () => {
  const path = `${folder.path}/run`;
  await saveCheckpoint(path, { step: 1, tensors: { w: tensor([1]) } });
  const { code, out } = await run("explain", path);
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/1 parameters, 0 with optimizer state\nThere is no optimizer state/),
  ]);
  expect(JSON.parse((await run("explain", path, "--json")).out).findings[0]).toMatchObject({ kind: "cold" });
});

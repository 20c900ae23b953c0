import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { floats, safetensorsFile, torchTensorCall, torchZip } from "../../../testing/files/made-files";
import { Call, Name, Tuple } from "../../../testing/files/pickles";
import { STATE, STORAGES } from "../../../testing/files/torch-state";
import { zipOf } from "../../../testing/files/zips";
import { openFiles } from "../../../testing/open-files";
import { readFloats } from "../../../testing/read-tensor";
import { underOurNames } from "../../naming/names";

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const optimizer = torchZip(STATE.optimizer, STORAGES);
const MODELS = {
  "model.safetensors": safetensorsFile([
    { name: "fc.bias", shape: [2], data: STORAGES[1] },
    { name: "fc.weight", shape: [2, 3], data: STORAGES[0] },
  ]),
  "pytorch_model.bin": torchZip(STATE.model, STORAGES),
};
const TRAINER = {
  "optimizer.pt": optimizer,
  "scheduler.pt": torchZip({ last_epoch: 5, base_lrs: [0.5] }, {}),
  "trainer_state.json": json({ global_step: 500, epoch: 1.5 }),
  "config.json": json({ model_type: "gpt2" }),
  "rng_state.pth": torchZip({ python: [3, [1, 2]], cpu: torchTensorCall("0", [2]) }, { 0: floats(7, 8) }),
};

describe("Hugging Face Trainer", () => {
  it.each(Object.entries(MODELS))("is read with %s, state named after parameters", async (name, model) => {
    const source = await openFiles({ ...TRAINER, [name]: model }, "");
    expect([source.format, source.step]).toEqual(["Hugging Face Trainer", 500]);
    expect(source.values).toMatchObject({
      "scheduler.last_epoch": 5,
      trainer_state: { epoch: 1.5 },
      config: { model_type: "gpt2" },
      rng_state: { python: [3, [1, 2]] },
    });
    const ours = await underOurNames(source);
    expect([...ours.tensors.keys()].sort()).toEqual([
      "fc.bias",
      "fc.bias.exp_avg",
      "fc.bias.step",
      "fc.weight",
      "fc.weight.exp_avg",
      "fc.weight.step",
      "rng_state.cpu",
    ]);
    expect(await readFloats(ours, "fc.bias")).toEqual([7, 8]);
    expect(await readFloats(ours, "fc.bias.exp_avg")).toEqual([15, 16]);
    expect(await readFloats(ours, "rng_state.cpu")).toEqual([7, 8]);
    expect(ours.values.optimizer).toMatchObject({ groups: [{ lr: 0.5, params: ["fc.weight", "fc.bias"] }] });
  });

  it("is read where the loss was NaN, as Python writes it", async () => {
    const text = String.raw`{"global_step": 500, "log_history": [{"loss": NaN, "a": [-Infinity,Infinity], "said": "\"NaN"}]}`;
    const files = { ...TRAINER, ...MODELS, "trainer_state.json": Buffer.from(text) };
    const { step, values } = await openFiles(files, "");
    expect(step).toBe(500);
    const line = { loss: "NaN", a: ["-Infinity", "Infinity"], said: '"NaN' };
    expect(values.trainer_state).toMatchObject({ log_history: [line] });
  });

  it("tells parameters of equal shape by the model's order where the model is PyTorch's alone", async () => {
    const pairs = [new Tuple("a", torchTensorCall("0", [2])), new Tuple("b", torchTensorCall("1", [2]))];
    const model = new Call(new Name("collections", "OrderedDict"), [pairs]);
    const state = new Map([
      [0, { exp_avg: torchTensorCall("0", [2]) }],
      [1, { exp_avg: torchTensorCall("1", [2]) }],
    ]);
    const storages = { 0: floats(1, 2), 1: floats(3, 4) };
    const files = {
      "optimizer.pt": torchZip({ state, param_groups: [{ lr: 1, params: [0, 1] }] }, storages),
      "trainer_state.json": json({}),
    };
    const open = (more: Record<string, Uint8Array>) => openFiles({ ...files, ...more }, "");
    const sorted = safetensorsFile(["a", "b"].map((name, i) => ({ name, shape: [2], data: floats(i, i) })));
    await expectCode(
      "BAD_STATE",
      underOurNames(await open({ "model.safetensors": sorted }), { parameterOrder: "model" }),
    );
    const ours = await underOurNames(await open({ "pytorch_model.bin": torchZip(model, storages) }), {
      parameterOrder: "model",
    });
    expect(await readFloats(ours, "b.exp_avg")).toEqual([3, 4]);
  });

  it("of a whole run is reported, and names the latest step", async () => {
    const files = ["9", "20"].map((step) => [`checkpoint-${step}/trainer_state.json`, json({})]);
    const said = await expectCode("UNSUPPORTED", openFiles(Object.fromEntries(files), ""));
    expect(said).toMatch(/The latest is \S*checkpoint-20\.$/);
  });

  it("without a model is reported", async () => {
    expect(await expectCode("MISSING", openFiles(TRAINER, ""))).toMatch(/model\.safetensors/);
  });
});

it("gives a folder with pytorch_model.bin as PyTorch's", async () => {
  const source = await openFiles({ "pytorch_model.bin": MODELS["pytorch_model.bin"], "config.json": json({}) }, "");
  expect([source.format, await readFloats(source, "fc.bias")]).toEqual(["PyTorch", [7, 8]]);
});

it.each([undefined, {}])("reads Stable-Baselines3's archives, members deflated: %s", async (deflated) => {
  const members = {
    data: json({ num_timesteps: 2048, gamma: 0.9, policy_class: { ":serialized:": "gAWV" } }),
    "pytorch_variables.pth": torchZip(null, {}),
    "policy.pth": torchZip(STATE.model, STORAGES),
    "policy.optimizer.pth": optimizer,
  };
  const source = await openFiles({ "ppo.zip": zipOf(members, deflated ? { deflated } : {}) });
  expect([source.format, source.step, source.values.gamma]).toEqual(["Stable-Baselines3", 2048, 0.9]);
  expect(source.values).not.toHaveProperty("policy_class");
  expect(await readFloats(source, "policy.fc.bias")).toEqual([7, 8]);
  const ours = await underOurNames(source);
  expect(await readFloats(ours, "fc.weight.exp_avg")).toEqual([9, 10, 11, 12, 13, 14]);
  expect(ours.tensors.get("fc.weight.exp_avg")).toMatchObject({ follows: "fc.weight" });
});

// What PyTorch saved comes back: twelve groups, states and items of a list (as text, 10 comes before 2), the first rates of a schedule, Muon before a step.

import { type OptimizerState, parameter } from "@opt/core";
import { Muon } from "@opt/muon";
import { describe, expect, it } from "vitest";
import { EXPECTED, torchFile } from "../../../testing/files/torch-files";
import { scratchFolder } from "../../../testing/fixtures";
import { readFloats } from "../../../testing/read-tensor";
import { usingSource } from "../../../testing/using-source";
import { convertCheckpoint, loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "../../index";

const scratch = scratchFolder();
const at = (name: string): string => `${scratch.path}/${name}`;
const twelve = Array.from({ length: 12 }, (_, i) => i);

/** The groups are in no order that proves names. */
const map = Object.fromEntries(twelve.map((i) => [`optimizer.state.${i}`, `layers.${i}.w`]));
const rates = EXPECTED["many.pt rates"]!;

/** Each option of each group, of a file whose optimizer has numbers. */
const optionsIn = (path: string) =>
  usingSource(path, ({ values }) =>
    Object.fromEntries(
      Object.keys(rates).map((option) => [option, twelve.map((i) => values[`optimizer.param_groups.${i}.${option}`])]),
    ),
  );

describe("twelve of everything", () => {
  it("are read in order: states by parameter, options by group, items of a list", async () => {
    await usingSource(torchFile("many.pt"), async (source) => {
      for (const i of twelve) {
        const key = `layers.${i}.w.exp_avg`;
        expect([key, await readFloats(source, `optimizer.state.${i}.exp_avg`)]).toEqual([
          key,
          EXPECTED["many.pt"]![key],
        ]);
        expect(await readFloats(source, `queue.${i}`)).toEqual(new Array(i + 1).fill(i));
      }
      expect(source.structure).toBeDefined();
    });
    expect(await optionsIn(torchFile("many.pt"))).toEqual(rates);
  });

  it("go to a checkpoint of ours and back: nesting, order, rates and bytes", async () => {
    await convertCheckpoint(torchFile("many.pt"), at("ours"), { to: "checkpoint", map });
    await convertCheckpoint(at("ours"), at("back.pt"), { to: "pt" });
    expect(await optionsIn(at("back.pt"))).toEqual(rates);
    await usingSource(torchFile("many.pt"), (before) =>
      usingSource(at("back.pt"), async (after) => {
        expect(after.structure).toEqual(before.structure);
        for (const key of before.tensors.keys()) {
          expect([key, await readFloats(after, key)]).toEqual([key, await readFloats(before, key)]);
        }
      }),
    );
  });

  it("go to DCP and back", async () => {
    await convertCheckpoint(torchFile("many.pt"), at("dcp"), { to: "dcp", map });
    await convertCheckpoint(at("dcp"), at("again.pt"), { to: "pt" });
    await usingSource(at("again.pt"), async (source) => {
      for (const i of twelve) {
        const key = `layers.${i}.w.exp_avg_sq`;
        const [name] = [...source.tensors.keys()].filter((each) => each.endsWith(`.${key}`) || each === key);
        expect([key, name && (await readFloats(source, name))]).toEqual([key, EXPECTED["many.pt"]![key]]);
        expect(await readFloats(source, `queue.${i}`)).toEqual(new Array(i + 1).fill(i));
      }
    });
  });

  it("of a list in DCP that PyTorch wrote stand in order", async () => {
    await convertCheckpoint(torchFile("many"), at("list.pt"), { to: "pt" });
    await usingSource(at("list.pt"), async (source) => {
      const items = twelve.map((i) => ({ tensor: `queue.${i}` }));
      expect(source.structure).toEqual({ dict: [["queue", { list: items }]] });
      for (const i of twelve) expect(await readFloats(source, `queue.${i}`)).toEqual(new Array(i + 1).fill(i));
    });
  });
});

it("initial_lr is the schedule's first rate of each group, as PyTorch has it", async () => {
  const params = twelve.map((i) => `layers.${i}.w`);
  const { lr, initial_lr: baseLrs, weight_decay: decay } = rates;
  const groups = params.map((param, i) => ({
    params: [param],
    lr: lr![i]!,
    betas: [0.9, 0.999],
    weightDecay: decay![i]!,
  }));
  const { tensors, values } = optimizerContents({ groups, state: {} } as unknown as OptimizerState);
  const own = Object.fromEntries(
    params.map((param) => [param, { dtype: "F32", shape: [1], data: Float32Array.of(1) }]),
  );
  const schedule = { kind: "StepLR", lastEpoch: 3, baseLrs: baseLrs!, lr: lr! };
  await saveCheckpoint(at("scheduled"), { step: 3, tensors: { ...own, ...tensors }, values: { ...values, schedule } });
  await convertCheckpoint(at("scheduled"), at("scheduled.pt"), { to: "pt" });
  expect(await optionsIn(at("scheduled.pt"))).toEqual(rates);
});

it("a Muon of PyTorch is whole when it is saved before its first step here", async () => {
  const expected = EXPECTED["muon.pt"]!;
  await convertCheckpoint(torchFile("muon.pt"), at("muon"), { to: "checkpoint" });
  const loaded = await loadCheckpoint(at("muon"));
  const w = parameter(loaded.tensors.w!.dataSync(), { shape: [2, 3], name: "w" });
  const optimizer = new Muon([["w", w]]);
  optimizer.loadStateDict(optimizerState(loaded));
  const state = optimizer.stateDict();
  expect(state.groups[0]).toMatchObject({ lr: 0.25, momentum: 0.75 });
  const { tensors, values } = optimizerContents(state);
  await saveCheckpoint(at("muon-saved"), { step: 2, tensors: { w, ...tensors }, values });
  await convertCheckpoint(at("muon-saved"), at("muon-back.pt"), { to: "pt" });
  await usingSource(at("muon-back.pt"), async (source) => {
    expect(await readFloats(source, "model.w")).toEqual(expected.w);
    expect(await readFloats(source, "optimizer.state.0.momentum_buffer")).toEqual(expected["w.momentum_buffer"]);
  });
});

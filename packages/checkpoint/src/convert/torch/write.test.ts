import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { adamState } from "../../../testing/adam-state";
import { expectCode } from "../../../testing/expect-code";
import { torchFile } from "../../../testing/files/torch-files";
import { scratchFolder } from "../../../testing/fixtures";
import { readFloats } from "../../../testing/read-tensor";
import { sourceOf } from "../../../testing/source-of";
import { usingSource } from "../../../testing/using-source";
import { optimizerContents } from "../../format/optimizer-state";
import { underOurNames } from "../../naming/names";
import { openSource } from "../../read/open";
import { saveCheckpoint } from "../../save/save";
import { convertCheckpoint } from "../convert";
import { writeTorch } from "./write";
import { writeDcp } from "./write-dcp";

const scratch = scratchFolder();
const at = (name: string): string => join(scratch.path, name);

const structureOf = (path: string) => usingSource(path, ({ structure }) => structure);

describe("PyTorch files", () => {
  it.each([
    ["lightning.pt", {}],
    [
      "swapped.pt",
      { parameterOrder: "model" as const, map: { "optimizer.state.0": "2.weight", "optimizer.state.1": "0.weight" } },
    ],
    ["values.pt", {}],
  ])("%s goes to a checkpoint of ours and back as it was: nesting, types and bytes", async (name, naming) => {
    await convertCheckpoint(torchFile(name), at("ours"), { to: "checkpoint", ...naming });
    await convertCheckpoint(at("ours"), at("back.pt"), { to: "pt" });
    const [one, two] = [await structureOf(torchFile(name)), await structureOf(at("back.pt"))];
    expect(two).toEqual(one);
    await usingSource(torchFile(name), (before) =>
      usingSource(at("back.pt"), async (after) => {
        for (const key of before.tensors.keys()) {
          if (before.tensors.get(key)!.dtype !== "F32") continue;
          expect([key, await readFloats(after, key)]).toEqual([key, await readFloats(before, key)]);
        }
      }),
    );
  });

  it("goes to DCP with its groups' names, which stay there", async () => {
    const { tensors, values } = optimizerContents(adamState());
    const w = { dtype: "F32", shape: [2], data: Float32Array.of(1, 2) };
    await saveCheckpoint(at("run"), { step: 5, tensors: { w, ...tensors }, values });
    await convertCheckpoint(at("run"), at("one.pt"), { to: "pt" });
    for (const [from, to] of [
      ["run", "first"],
      ["one.pt", "second"],
      ["second", "third"],
    ] as const) {
      await convertCheckpoint(at(from), at(to), { to: "dcp" });
      const names = await usingSource(at(to), (source) =>
        Object.entries(source.values).filter(([key]) => key.includes("param_groups.0.param_names")),
      );
      expect([to, names.map(([, name]) => name)]).toEqual([to, ["w"]]);
    }
  });

  it("a run of ours: the model's parameters, numbered state with names, counters as tensors, torch's options", async () => {
    const { tensors, values } = optimizerContents(adamState());
    await saveCheckpoint(at("run"), {
      step: 5,
      tensors: { w: { dtype: "F32", shape: [2], data: Float32Array.of(1, 2) }, ...tensors },
      values: { ...values, epoch: 2 },
    });
    await convertCheckpoint(at("run"), at("run.pt"), { to: "pt" });
    await usingSource(at("run.pt"), async (source) => {
      expect(source.values).toMatchObject({ epoch: 2, step: 5, "optimizer.param_groups.0.param_names.0": "w" });
      expect(source.values).toMatchObject({
        "optimizer.param_groups.0.weight_decay": 0.25,
        "optimizer.param_groups.0.foreach": null,
      });
      expect(await readFloats(source, "optimizer.state.0.step")).toEqual([7]);
      const ours = await underOurNames(source);
      expect(await readFloats(ours, "w.exp_avg")).toEqual([3, 4]);
      expect(ours.values.optimizer).toMatchObject({
        groups: [{ params: ["w"], lr: 0.5, betas: [0.9, 0.999], weightDecay: 0.25 }],
      });
    });
  });

  it("what belongs to the run is beside the model, and comes back", async () => {
    const plain = { dtype: "F32", shape: [2], data: Float32Array.of(1, 2) };
    const tensors = { w: plain, "fit.losses": { ...plain, role: "state" as const } };
    await saveCheckpoint(at("fit"), { step: 5, tensors });
    await convertCheckpoint(at("fit"), at("fit.pt"), { to: "pt" });
    const members = ((await structureOf(at("fit.pt"))) as { dict: unknown[] }).dict;
    expect(members).toEqual([
      ["model", { dict: [["w", { tensor: "model.w" }]] }],
      ["step", 5],
      ["fit.losses", { tensor: "fit.losses" }],
    ]);
    await convertCheckpoint(at("fit.pt"), at("again"), { to: "checkpoint" });
    const { tensors: names } = await openSource(at("again"));
    expect([...names.keys()]).toEqual(expect.arrayContaining(["fit.losses"]));
  });

  it("parameters alone are a plain state dict", async () => {
    await writeTorch(sourceOf({ "fc.w": { shape: [2, 1], data: Float32Array.of(1, 2) } }), at("model.pt"));
    expect(await structureOf(at("model.pt"))).toEqual({ dict: [["fc.w", { tensor: "fc.w" }]] });
  });

  it("options that changed here are written as they are now", async () => {
    await convertCheckpoint(torchFile("lightning.pt"), at("ours"), { to: "checkpoint" });
    const source = await openSource(at("ours"));
    const { groups } = source.values.optimizer as { groups: object[] };
    const values = { ...source.values, optimizer: { groups: [{ ...groups[0], lr: 3 }], counters: {} } };
    await writeTorch({ ...source, values: values as never, tensors: source.tensors }, at("now.pt"));
    await source.close();
    const text = JSON.stringify(await structureOf(at("now.pt")));
    expect(text).toContain('["lr",{"float":"3"}]');
    expect(text).toContain('["betas",{"tuple":[0.9,0.999]}]');
  });

  it("nothing is left where a value has no plain form, or a folder is in the way", async () => {
    const odd = sourceOf({}, { values: { torch: { dict: [["a", { text: "<object>" }]] } } });
    await expectCode("UNSUPPORTED", writeTorch(odd, at("odd.pt")));
    await expectCode("BAD_ARGUMENT", writeTorch(sourceOf({}), scratch.path));
    expect(readdirSync(scratch.path)).toEqual([]);
  });

  it("an invalid nesting is ignored", async () => {
    const source = sourceOf({ w: { shape: [1], data: Float32Array.of(1) } }, { values: { torch: { dict: 5 } } });
    await writeTorch(source, at("a.pt"));
    expect(await structureOf(at("a.pt"))).toEqual({ dict: [["w", { tensor: "w" }]] });
  });
});

describe("DCP folders", () => {
  it.each(["nested", "flat"])("%s goes to three ranks of ours and back as it was", async (name) => {
    await convertCheckpoint(torchFile(name), at("ours"), { to: "checkpoint" });
    await convertCheckpoint(at("ours"), at("back"), { to: "dcp" });
    await usingSource(torchFile(name), (before) =>
      usingSource(at("back"), async (after) => {
        expect([...after.tensors.keys()].sort()).toEqual([...before.tensors.keys()].sort());
        expect(after.values).toEqual(before.values);
        for (const key of before.tensors.keys()) {
          expect([key, await readFloats(after, key)]).toEqual([key, await readFloats(before, key)]);
        }
      }),
    );
  });

  it("numbered state is written by name, as distributed optimizers ask for it", async () => {
    await convertCheckpoint(torchFile("lightning.pt"), at("dcp"), { to: "dcp" });
    await usingSource(at("dcp"), ({ tensors, values }) => {
      expect(tensors.has("optimizer_states.0.state.0.weight.exp_avg")).toBe(true);
      expect(values["optimizer_states.0.param_groups.0.params.0"]).toBe("0.weight");
    });
  });

  it("large tensors are cut into chunks of rows", async () => {
    const data = Float32Array.from({ length: 35 }, (_, i) => i);
    await writeDcp(sourceOf({ w: { shape: [5, 7], data }, s: { shape: [], data: Float32Array.of(2) } }), at("dcp"), {
      largestChunk: 60,
    });
    await usingSource(at("dcp"), async (source) => {
      expect(source.tensors.get("model.w")!.boxes.map(({ offset, size }) => [...offset, ...size])).toEqual([
        [0, 0, 2, 7],
        [2, 0, 2, 7],
        [4, 0, 1, 7],
      ]);
      expect(await readFloats(source, "model.w")).toEqual([...data]);
      expect(await readFloats(source, "model.s")).toEqual([2]);
    });
  });
});

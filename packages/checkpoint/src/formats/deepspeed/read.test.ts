import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { universalFolder, ZERO_TENSORS, zero2Folder, zero3Folder } from "../../../testing/files/zero-files";
import { openFiles } from "../../../testing/open-files";
import { readFloats } from "../../../testing/read-tensor";
import { boxesOfRange } from "./pieces";

type Files = Record<string, Uint8Array>;
const text = (value: string) => new TextEncoder().encode(value);
const inside = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, bytes]) => [`${folder}/${name}`, bytes]));
const without = (files: Files, name: string): Files =>
  Object.fromEntries(Object.entries(files).filter(([key]) => key !== name));

describe("DeepSpeed", () => {
  it.each<[string, Files]>([
    ["stage 2", zero2Folder()],
    [
      "stage 1 in bfloat16",
      Object.fromEntries(
        Object.entries(zero2Folder()).map(([name, bytes]) => [name.replace(/^zero/, "bf16_zero"), bytes]),
      ),
    ],
    ["stage 3", zero3Folder()],
    ["Universal", universalFolder()],
    ["Universal of stage 3", universalFolder(true)],
    ["the step that latest names", { latest: text("global_step7\n"), ...inside("global_step7", zero2Folder()) }],
  ])("of %s is read whole", async (_, files) => {
    const source = await openFiles(files, "");
    expect(source).toMatchObject({ format: "DeepSpeed", step: 7, values: { epoch: 2 } });
    expect([...source.tensors.keys()].sort()).toEqual(Object.keys(ZERO_TENSORS).sort());
    for (const [name, expected] of Object.entries(ZERO_TENSORS)) {
      expect([name, await readFloats(source, name)]).toEqual([name, expected]);
    }
    expect(source.tensors.get("w.exp_avg")).toMatchObject({ shape: [3, 5], role: "state", follows: "w" });
    expect(source.tensors.get("f")!.shape).toEqual([2, 1]);
    await source.close();
  });

  it.each([[[3, 5]], [[1]], [[1, 1]], [[]]])(
    "gives state of [%s] its parameter's shape, and a step none",
    async (w) => {
      for (const isFlat of [false, true]) {
        const { tensors } = await openFiles(universalFolder(isFlat, { w, b: [3] }), "");
        expect(["w", "w.exp_avg", "w.step"].map((name) => tensors.get(name)!.shape)).toEqual([w, w, []]);
      }
    },
  );

  it("keeps the options of groups under our names", async () => {
    const options = { groups: [{ lr: 0.5, weightDecay: 0.25, params: ["w", "b"] }], counters: {} };
    for (const files of [zero2Folder(), zero3Folder(), universalFolder()]) {
      expect((await openFiles(files, "")).values.optimizer).toEqual(options);
    }
  });

  it("cuts a rank's part into rows: the second of four holds elements 6 to 12", async () => {
    const source = await openFiles(zero2Folder(), "");
    expect(source.tensors.get("w")!.boxes.filter(({ file }) => file.includes("rank_1_"))).toMatchObject([
      { offset: [1, 1], size: [1, 4] },
      { offset: [2, 0], size: [1, 2] },
    ]);
  });

  it.each<[string, string, Files]>([
    ["a rank's file that is missing", "MISSING", without(zero2Folder(), "zero_pp_rank_2_mp_rank_00_optim_states.pt")],
    [
      "the last rank's file that is missing",
      "MISSING",
      without(zero3Folder(), "zero_pp_rank_3_mp_rank_00_optim_states.pt"),
    ],
    [
      "the model's file of a rank that is missing",
      "MISSING",
      without(zero3Folder(), "zero_pp_rank_1_mp_rank_00_model_states.pt"),
    ],
    ["a moment of one parameter that is missing", "MISSING", without(universalFolder(), "zero/w/exp_avg.pt")],
    ["no ranks at all", "MISSING", without(zero2Folder({ ranks: 1 }), "zero_pp_rank_0_mp_rank_00_optim_states.pt")],
    ["groups of another model", "CORRUPT", zero2Folder({ padding: 22 })],
    ["groups that are too short", "CORRUPT", zero2Folder({ ranks: 2, padding: -2 })],
    ["groups over different numbers of ranks", "UNSUPPORTED", zero2Folder({ count: [4, 2] })],
    ["tensor parallel ranks", "UNSUPPORTED", { ...zero2Folder(), "mp_rank_01_model_states.pt": text("") }],
    ["a step outside of the folder", "REFUSED", { latest: text("../elsewhere"), "a/b": text("") }],
    [
      "a parameter without its folder",
      "MISSING",
      Object.fromEntries(Object.entries(universalFolder()).filter(([name]) => !name.startsWith("zero/w/"))),
    ],
    ["a parameter without its weights", "MISSING", without(universalFolder(), "zero/b/fp32.pt")],
  ])("meets %s", async (_, code, files) => {
    await expectCode(code as never, openFiles(files, ""));
  });
});

it.each([[[]], [[7]], [[3, 4]], [[2, 3, 4]], [[2, 1, 3, 2]]])("ranges of %s are the fewest boxes in order", (shape) => {
  const count = shape.reduce((all, length) => all * length, 1);
  const numbered = (box: { offset: readonly number[]; size: readonly number[] }): number[] => {
    let all = [0];
    for (const [d, length] of shape.entries()) {
      all = all.flatMap((n) => Array.from({ length: box.size[d]! }, (_, i) => n * length + box.offset[d]! + i));
    }
    return all;
  };
  for (let begin = 0; begin <= count; begin++) {
    for (let end = begin; end <= count; end++) {
      const boxes = [...boxesOfRange(shape, begin, end)];
      expect(boxes.flatMap(numbered)).toEqual(Array.from({ length: end - begin }, (_, i) => begin + i));
      expect(boxes.length).toBeLessThanOrEqual(Math.max(1, 2 * shape.length - 1));
    }
  }
});

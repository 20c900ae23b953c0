/** Other names by pattern, and tensors left out: whatever speaks of a tensor speaks of it by its new name. */
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { fileOf } from "../../../testing/files/file-of";
import type { Json } from "../../format/source";
import { withoutTensors } from "../../read/select";
import { renamePatterns } from "./rename";

const one = Float32Array.of(1);
const state = (follows: string) => ({ numbers: one, role: "state" as const, follows });
const FILE = {
  "enc.w": one,
  "enc.w.exp_avg": state("enc.w"),
  "m.enc.w": state("enc.w"),
  "enc.w2": one,
};
const namesOf = ({ tensors }: ReturnType<typeof fileOf>) =>
  [...tensors.values()].map(({ name, follows }) => [name, follows]);

describe("names", () => {
  it.each<[string, Record<string, string>, [string, string?][]]>([
    ["of a parameter go on in its state", { "enc.w": "a" }, [["a"], ["a.exp_avg", "a"], ["m.enc.w", "a"], ["enc.w2"]]],
    [
      "of states that do not begin with it are their own",
      { "m.*": "n.*" },
      [["enc.w"], ["enc.w.exp_avg", "enc.w"], ["n.enc.w", "enc.w"], ["enc.w2"]],
    ],
    [
      "keep what the star matched, between beginning and end",
      { "e*.w2": "<*>" },
      [["enc.w"], ["enc.w.exp_avg", "enc.w"], ["m.enc.w", "enc.w"], ["<nc>"]],
    ],
    [
      "go by the first pattern that fits",
      { "*.w2": "first.*", "*": "x.*" },
      [["x.enc.w"], ["x.enc.w.exp_avg", "x.enc.w"], ["x.m.enc.w", "x.enc.w"], ["first.enc"]],
    ],
    [
      "have nothing in place of a star that the pattern lacks",
      { "enc.w2": "x*y" },
      [["enc.w"], ["enc.w.exp_avg", "enc.w"], ["m.enc.w", "enc.w"], ["xy"]],
    ],
  ])("%s", (_, rename, expected) => {
    expect(namesOf(renamePatterns(fileOf("x", FILE), rename, new Set()))).toEqual(
      expected.map(([name, follows]) => [name, follows]),
    );
  });

  it("must be texts", async () => {
    const rename = { "enc.w": 5 as unknown as string };
    await expectCode("BAD_ARGUMENT", (async () => renamePatterns(fileOf("x", FILE), rename, new Set()))());
  });

  it("stay without patterns, and the file is the same", () => {
    const file = fileOf("x", FILE);
    expect(renamePatterns(file, {}, new Set())).toBe(file);
    expect(withoutTensors(file, [], new Set())).toBe(file);
  });
});

describe("an optimizer's values", () => {
  const renamed = (values: { [key: string]: Json }) =>
    renamePatterns(fileOf("x", FILE, { values }), { "enc.w": "a" }, new Set()).values;

  it.each<[string, Json, Json]>([
    [
      "name parameters in groups and counters",
      { groups: [{ lr: 1, params: ["enc.w", "enc.w2", "gone"] }], counters: { "enc.w": { step: 2 }, gone: {} } },
      { groups: [{ lr: 1, params: ["a", "enc.w2", "gone"] }], counters: { a: { step: 2 }, gone: {} } },
    ],
    ["may have no counters", { groups: [{ params: ["enc.w"] }] }, { groups: [{ params: ["a"] }], counters: {} }],
    [
      "keep invalid groups",
      { groups: ["enc.w", null, { lr: 1 }, { params: "enc.w" }] },
      { groups: ["enc.w", null, { lr: 1 }, { params: "enc.w" }], counters: {} },
    ],
    ["are left alone without groups", { counters: { "enc.w": 1 } }, { counters: { "enc.w": 1 } }],
    ["are left alone where they are words", "enc.w", "enc.w"],
    ["are left alone where they are lists", ["enc.w"], ["enc.w"]],
  ])("%s", (_, given, expected) => {
    expect(renamed({ optimizer: given })).toEqual({ optimizer: expected });
  });

  it("are kept where PyTorch's nesting is invalid", () => {
    expect(renamed({ torch: [1] })).toEqual({ torch: [1] });
  });
});

describe("without", () => {
  it("what a pattern matches, unreadable tensors too; which patterns were of use is told", () => {
    const file = fileOf("x", FILE, {
      unreadable: new Map([
        ["enc.q", "why"],
        ["dec.q", "why"],
      ]),
    });
    const unused = new Set(["enc.*", "m.enc.w", "nothing"]);
    const { tensors, unreadable } = withoutTensors(file, [...unused], unused);
    expect([...tensors.keys()]).toEqual([]);
    expect([...unreadable!.keys()]).toEqual(["dec.q"]);
    expect([...unused]).toEqual(["nothing"]);
  });

  it("nothing that none matches", () => {
    const { tensors, unreadable } = withoutTensors(fileOf("x", FILE), ["dec.*"], new Set());
    expect([...tensors.keys()]).toEqual(Object.keys(FILE));
    expect([...unreadable!]).toEqual([]);
  });
});

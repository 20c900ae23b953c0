// What the device is given to compile: a reviewer sees every kernel that a change changes.
import { adamRules } from "@opt/adam-amsgrad/rules";
import { type Program, softmaxRows } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { renamed } from "../emit/names";
import { type Shader, writeShader } from "../shader/shader";
import { copyShader } from "./copy";
import { mapShader } from "./map";
import { thinShader, tiledShader } from "./matmul";
import { rows } from "./rows";
import { ruleShader } from "./rule";
import { quadRuleShader } from "./rule-in-quads";

/** tanh(a * s) + erf(b) - Infinity */
const program: Program = {
  buffers: ["a", "target"],
  scalars: ["s"],
  nodes: [
    { op: "buffer", args: [], value: 0, uniform: false },
    { op: "scalar", args: [], value: 0, uniform: true },
    { op: "mul", args: [0, 1], value: 0, uniform: false },
    { op: "tanh", args: [2], value: 0, uniform: false },
    { op: "buffer", args: [], value: 1, uniform: false },
    { op: "erf", args: [4], value: 0, uniform: false },
    { op: "add", args: [3, 5], value: 0, uniform: false },
    { op: "constant", args: [], value: Number.POSITIVE_INFINITY, uniform: true },
    { op: "sub", args: [6, 7], value: 0, uniform: false },
  ],
  outputs: [{ slot: 0, node: 8 }],
};

const adamw = adamRules[0]!;
const untransposed = { transposeA: false, transposeB: false };

const SHADERS: readonly (readonly [string, Shader, readonly number[]])[] = [
  ["a rule in one heap", ruleShader(adamw.name, adamw.program), [...adamw.buffers.map(() => 0), 0]],
  [
    "a rule in quads",
    quadRuleShader(adamw.name, adamw.program, undefined, [], 1024),
    [...adamw.buffers.map(() => 0), 0],
  ],
  ["a rule over two heaps", ruleShader(adamw.name, adamw.program), [...adamw.buffers.map((_, i) => i % 2), 0]],
  ["a dense map", mapShader(program, 1), [0, 0, 0]],
  ["a map with broadcasting", mapShader(program, 3), [0, 0, 1]],
  ["a cast to half", copyShader("f32", "f16", 2), [0, 0]],
  ["a matrix product in tiles", tiledShader(untransposed, 32, 1), [0, 0, 0]],
  ["a matrix product in large tiles", tiledShader(untransposed, 64, 2), [0, 0, 0]],
  ["a thin matrix product", thinShader({ transposeA: true, transposeB: true }), [0, 0, 0]],
];

describe("WGSL", () => {
  it.each(SHADERS)("of %s", (_name, shader, pattern) => expect(writeShader(shader, pattern)).toMatchSnapshot());

  it("of softmax of long rows, with and without subgroups", () => {
    for (const subgroups of [false, true]) {
      const { long } = rows.prepare({ kind: "rows", program: softmaxRows, dtype: "f32" }, { subgroups, grain: 1 });
      expect(writeShader(long!, [0, 0])).toMatchSnapshot();
    }
  });

  it("prefixes names, so that they meet none of its own", () => {
    expect(renamed(program).buffers).toEqual(["u_a", "u_target"]);
  });
});

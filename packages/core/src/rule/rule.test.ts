import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../errors/errors";
import { type Expression, nodeOf, type OpName, operate, RULE_OPS } from "./expression";
import { defineRule, type RuleDefinition } from "./rule";
import { abs, add, div, exp, fma, less, maximum, minimum, mul, neg, sqrt, sub, where } from "./symbols";

type Definition = RuleDefinition<"param" | "grad", "lr" | "decay">;

const base: Definition = {
  name: "base",
  buffers: ["param", "grad"],
  scalars: ["lr", "decay"],
  update: ({ param, grad }, { lr, decay }) => ({ param: sub(mul(param, decay), mul(lr, grad)) }),
};

const hashOf = (changes: Partial<Definition>) => defineRule({ ...base, ...changes }).hash;

describe("the content hash", () => {
  it("does not know names", () => {
    const renamed = defineRule({
      name: "other",
      buffers: ["weight", "gradient"],
      scalars: ["rate", "keep"],
      update: ({ weight, gradient }, { rate, keep }) => ({ weight: sub(mul(weight, keep), mul(rate, gradient)) }),
    });
    expect(renamed.hash).toBe(hashOf({}));
  });

  it.each<[string, Partial<Definition>]>([
    [
      "the order of operands",
      { update: ({ param, grad }, { lr, decay }) => ({ param: sub(mul(lr, grad), mul(param, decay)) }) },
    ],
    ["an op", { update: ({ param, grad }, { lr, decay }) => ({ param: add(mul(param, decay), mul(lr, grad)) }) }],
    [
      "fused or not",
      { update: ({ param, grad }, { lr, decay }) => ({ param: fma(neg(lr), grad, mul(param, decay)) }) },
    ],
    ["the slot of a buffer", { buffers: ["grad", "param"] }],
    ["the slot of a scalar", { scalars: ["decay", "lr"] }],
    [
      "what is written",
      { update: ({ param, grad }, { lr, decay }) => ({ grad: sub(mul(param, decay), mul(lr, grad)) }) },
    ],
    ["a further write", { update: (b, h) => ({ ...base.update(b, h), grad: b.param }) }],
    ["a constant", { update: ({ param }) => ({ param: mul(param, 2) }) }],
  ])("knows %s", (_, changes) => expect(hashOf(changes)).not.toBe(hashOf({})));

  it("knows which of the same nodes are an op's operands, and which is written where", () => {
    const hashes = [
      ...["param", "grad"].map((last) =>
        hashOf({ update: (b) => ({ param: sub(sub(b.param, b.grad), b[last as "grad"]) }) }),
      ),
      hashOf({ update: ({ param, grad }) => ({ param: sub(param, grad), grad: mul(param, grad) }) }),
      hashOf({ update: ({ param, grad }) => ({ param: mul(param, grad), grad: sub(param, grad) }) }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("tells constants apart by value and sign of zero", () => {
    const hashes = [0, -0, 1, 1 + 2 ** -52, Number.NaN, Number.POSITIVE_INFINITY].map((constant) =>
      hashOf({ update: ({ param }) => ({ param: add(param, constant) }) }),
    );
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("never changes by accident: kernels built ahead are found by it", () => {
    expect(hashOf({})).toMatchInlineSnapshot(`"ac66ba58065f0d8e"`);
    expect(
      hashOf({ update: ({ param, grad }) => ({ param: where(less(param, -0.5), sqrt(grad), 1 / 3) }) }),
    ).toMatchInlineSnapshot(`"7f12eec1db2acd06"`);
  });
});

describe("tracing", () => {
  it("computes equal subexpressions once, in order, and only what is stored", () => {
    const { program, writes } = defineRule({
      ...base,
      update: ({ grad }, { lr }) => {
        mul(grad, 3); // leads nowhere
        return { grad: mul(mul(lr, grad), mul(lr, grad)), param: mul(lr, grad) };
      },
    });
    expect(writes).toEqual(["param", "grad"]);
    expect(program.nodes.map(({ op, args, uniform }) => `${op}(${args})${uniform ? " uniform" : ""}`)).toEqual([
      "scalar() uniform",
      "buffer()",
      "mul(0,1)",
      "mul(2,2)",
    ]);
    expect(program.outputs).toEqual([
      { slot: 0, node: 2 },
      { slot: 1, node: 3 },
    ]);
  });

  it("keeps 0 and -0 apart", () => {
    const { program } = defineRule({ ...base, update: ({ param }) => ({ param: mul(add(param, 0), add(param, -0)) }) });
    expect(program.nodes.filter(({ op }) => op === "constant").map(({ value }) => value)).toEqual([0, -0]);
  });

  it("marks as uniform what no buffer enters", () => {
    const { program } = defineRule({
      ...base,
      update: ({ param }, { lr }) => ({ param: mul(param, sqrt(mul(lr, 2))) }),
    });
    expect(program.nodes.filter(({ uniform }) => uniform).map(({ op }) => op)).toEqual([
      "scalar",
      "constant",
      "mul",
      "sqrt",
    ]);
  });
});

describe("defineRule rejects", () => {
  const p = { param: 0 } as never;
  const foreign = { [operate]: () => foreign } as never;
  it.each<[string, Partial<Record<keyof Definition, unknown>>, ErrorCode]>([
    ["no buffers", { buffers: [] }, "BAD_ARGUMENT"],
    ["one name twice", { buffers: ["param", "param"] }, "DUPLICATE"],
    ["one name for buffer and scalar", { scalars: ["param"] }, "DUPLICATE"],
    ["a name that is no identifier", { buffers: ["param", "grad", "exp_avg"] }, "BAD_ARGUMENT"],
    ["a name that ends as none", { buffers: ["param", "grad", "expAvg!"] }, "BAD_ARGUMENT"],
    ["a name that begins as none", { buffers: ["param", "grad", "0x"] }, "BAD_ARGUMENT"],
    ["writing in null", { update: () => null }, "BAD_ARGUMENT"],
    ["writing nothing", { update: () => ({}) }, "BAD_ARGUMENT"],
    [
      "writing an undeclared buffer",
      { update: (b: Record<string, Expression>) => ({ momentum: b.param }) },
      "BAD_ARGUMENT",
    ],
    ["writing a number", { update: () => p }, "BAD_ARGUMENT"],
    [
      "writing a condition",
      { update: (b: Record<string, Expression>) => ({ param: less(b.param!, b.grad!) }) },
      "BAD_ARGUMENT",
    ],
    [
      "an op that is not exact",
      { update: (b: Record<string, Expression>) => ({ param: exp(b.param!) }) },
      "BAD_ARGUMENT",
    ],
    ["writing in no object", { update: () => undefined }, "BAD_ARGUMENT"],
    [
      "a tensor among symbols",
      { update: (b: Record<string, Expression>) => ({ param: add(b.param!, foreign) }) },
      "BAD_ARGUMENT",
    ],
    ["null", { update: (b: Record<string, Expression>) => ({ param: add(null as never, b.param!) }) }, "BAD_ARGUMENT"],
    ["text", { update: (b: Record<string, Expression>) => ({ param: add(b.param!, "1" as never) }) }, "BAD_ARGUMENT"],
    [
      "a symbol that is not there",
      { update: (b: Record<string, Expression>) => ({ param: add(b.param!, b.momentum!) }) },
      "BAD_ARGUMENT",
    ],
    [
      "arithmetic on a condition",
      { update: (b: Record<string, Expression>) => ({ param: mul(b.param!, less(b.param!, 0)) }) },
      "BAD_ARGUMENT",
    ],
    [
      "choosing by a number",
      { update: (b: Record<string, Expression>) => ({ param: where(b.param!, 1, 0) }) },
      "BAD_ARGUMENT",
    ],
  ])("%s", (_, changes, code) => expectCode(code, () => defineRule({ ...base, ...changes } as Definition)));
});

it("has a function for each op of rules", () => {
  const functions = {
    add,
    sub,
    mul,
    div,
    neg,
    abs,
    sqrt,
    fma,
    maximum,
    minimum,
    less,
    where,
  };
  expect((Object.keys(functions) as OpName[]).map(nodeOf)).toEqual([...RULE_OPS]);
});

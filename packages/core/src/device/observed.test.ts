import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile, observed, type Tensor, tensor } from "../index";

const numbers = (x: Tensor) => [...x.dataSync()];
const x = tensor([1, 10]);

/** A compiled function without checks, and how often its body has run. */
function counted(body: (x: Tensor) => Tensor) {
  let runs = 0;
  const f = compile(
    (x: Tensor) => {
      runs++;
      return body(x);
    },
    { check: "never" },
  );
  return { f, runs: () => runs };
}

/** How often the body has run, after each of the changes. */
function runsOf(body: (x: Tensor) => Tensor, changes: readonly (() => void)[]): number[] {
  const { f, runs } = counted(body);
  f(x);
  return changes.map((change) => {
    change();
    for (let i = 0; i < 3; i++) expect(numbers(f(x))).toEqual(numbers(body(x)));
    return runs();
  });
}

class Scale {
  by = 2;
  offset?: number;
  readonly list = [1, 2];
  readonly map = new Map([["a", 1]]);
  readonly set = new Set([1]);
  readonly nested = { deep: [{ by: 1 }] };
  unused = 0;
  calls = 0;
}

const changes: [string, (scale: Scale, x: Tensor) => Tensor, (scale: Scale) => void][] = [
  ["a property", (scale, x) => x.mul(scale.by), (scale) => scale.by++],
  ["a property that comes", (scale, x) => x.add(scale.offset ?? 0), (scale) => (scale.offset = 3)],
  ["a property asked for by in", (scale, x) => x.add("more" in scale ? 1 : 0), (s) => Object.assign(s, { more: 1 })],
  ["a property that goes", (scale, x) => x.mul(scale.by ?? 7), (scale) => delete (scale as Partial<Scale>).by],
  ["the list of keys", (scale, x) => x.mul(Object.keys(scale).length), (scale) => Object.assign(scale, { more: 1 })],
  ["a property that is defined", (s, x) => x.mul(s.by), (s) => Object.defineProperty(s, "by", { get: () => 5 })],
  ["an item", (scale, x) => x.mul(scale.list[1]!), (scale) => (scale.list[1] = 5)],
  ["a list that grows", (scale, x) => x.mul(scale.list.length), (scale) => scale.list.push(1)],
  ["an entry of a map", (scale, x) => x.mul(scale.map.get("a")!), (scale) => scale.map.set("a", 4)],
  ["an item of a set", (scale, x) => x.mul(scale.set.size), (scale) => scale.set.add(4)],
  ["something deep", (scale, x) => x.mul(scale.nested.deep[0]!.by), (scale) => (scale.nested.deep[0]!.by = 3)],
];

describe("a compiled function traces again at the next call", () => {
  it.each(changes)("after a change of %s, and not later", (_, body, change) => {
    const scale = observed(new Scale());
    expect(runsOf((x) => body(scale, x), [() => {}, () => change(scale), () => {}])).toEqual([1, 2, 2]);
  });

  it("finds its older trace where the value comes back", () => {
    const scale = observed(new Scale());
    const to = (by: number) => () => {
      scale.by = by;
    };
    expect(runsOf((x) => x.mul(scale.by), [to(3), to(2), to(3), to(2)])).toEqual([2, 2, 2, 2]);
  });
});

describe("it does not trace again", () => {
  it("for properties that it has not read, and for those of other objects", () => {
    const [scale, other] = [observed(new Scale()), observed(new Scale())];
    const all = [() => scale.unused++, () => other.by++, () => scale.map.set("a", 2)];
    expect(runsOf((x) => x.mul(scale.by), all)).toEqual([1, 1, 1]);
  });

  it("for what the function itself counts, notes or adds", () => {
    const scale = observed(new Scale());
    const { f, runs } = counted((x) => {
      scale.calls++;
      scale.list.push(scale.calls);
      Object.assign(scale, { last: scale.by });
      return x.mul(scale.by);
    });
    for (let i = 0; i < 5; i++) f(x);
    expect(runs()).toBe(1);
  });

  it("for what is put back before the function ends", () => {
    const scale = observed(new Scale());
    const body = (x: Tensor) => {
      const before = scale.by;
      scale.by = 5;
      const result = x.mul(scale.by);
      scale.by = before;
      return result;
    };
    expect(runsOf(body, [() => {}, () => (scale.by = 3)])).toEqual([1, 2]);
  });
});

it("private fields, accessors and identity are as they were", () => {
  class Counter {
    constructor() {
      // biome-ignore lint/correctness/noConstructorReturn: as modules do it
      return observed(this);
    }
  }
  class Half extends Counter {
    #half = 1;
    get half() {
      return this.#half;
    }
    set half(value: number) {
      this.#half = value;
    }
    self() {
      return this;
    }
  }
  const half = new Half();
  half.half = 4;
  expect([half.half, half.self() === half, half instanceof Counter]).toEqual([4, true, true]);
});

it.each([null, 3, "text", undefined])("rejects %s", (value) => {
  expectCode("BAD_ARGUMENT", () => observed(value as never));
});

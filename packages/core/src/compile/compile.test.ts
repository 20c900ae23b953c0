import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { afterEachRun, inEachRun } from "../device/host-code";
import {
  type CompileOptions,
  compile,
  crossEntropyRows,
  dependsOn,
  fusedAttention,
  Generator,
  gatherSparse,
  init,
  keep,
  layerNorm,
  noGrad,
  onGradient,
  parameter,
  randn,
  type Tensor,
  tensor,
  tidy,
  zeros,
} from "../index";

await init("js"); // loads the passes

/** A device, and a tensor of it. */
function setUp(values: readonly number[] = [1, 2, 3]) {
  const device = new FakeDevice();
  return { device, x: tensor(values as number[], { device }) };
}

const numbers = (x: Tensor) => [...x.dataSync()];

describe("arguments", () => {
  it("may be any tensors of one shape, and of each shape there is a trace", () => {
    const { device } = setUp();
    const body = vi.fn((x: Tensor) => x.mul(2));
    const double = compile(body);
    for (let i = 0; i < 6; i++) expect(numbers(double(tensor([i, 1], { device })))).toEqual([2 * i, 2]);
    for (let i = 0; i < 6; i++) expect(numbers(double(tensor([i], { device })))).toEqual([2 * i]);
    expect(body).toHaveBeenCalledTimes(6); // of six calls, 1, 2 and 4 run the function
  });

  it("that are no tensors count by value", () => {
    const { x } = setUp();
    const scale = compile((x: Tensor, options: { by: number; name: string; flags: readonly boolean[] }) =>
      options.flags[0] ? x.mul(options.by) : x,
    );
    for (let i = 0; i < 5; i++) {
      expect(numbers(scale(x, { by: 2, name: "a", flags: [true] }))).toEqual([2, 4, 6]);
      expect(numbers(scale(x, { by: 3, name: "a", flags: [true] }))).toEqual([3, 6, 9]);
      expect(numbers(scale(x, { by: 3, name: "a", flags: [false] }))).toEqual([1, 2, 3]);
    }
  });

  it("may be views of other memory, from another place in each call", () => {
    const { device } = setUp();
    const all = tensor([1, 2, 3, 4, 5, 6], { device });
    const sum = compile((x: Tensor) => x.mul(2).sum());
    for (let i = 0; i < 5; i++) expect(numbers(sum(all.detach().reshape([6])))).toEqual([42]);
    const rows = all.reshape([3, 2]);
    for (let i = 0; i < 6; i++) expect(numbers(sum(rows.slice(i % 3, (i % 3) + 1)))).toEqual([2 * (4 * (i % 3) + 3)]);
  });

  it("are written in place where the function does", () => {
    const { device } = setUp();
    const count = compile((x: Tensor) => void x.set(x.add(1)));
    for (let i = 0; i < 5; i++) {
      const x = tensor([i], { device });
      count(x);
      expect(numbers(x)).toEqual([i + 1]);
    }
  });

  it("that share memory are told apart from others", () => {
    const { device } = setUp();
    const move = compile((a: Tensor, b: Tensor) => {
      a.set(b.add(1));
      return b.mul(10);
    });
    for (let i = 0; i < 6; i++) {
      const [a, b] = [tensor([1], { device }), tensor([i], { device })];
      expect(numbers(move(a, b))).toEqual([10 * i]);
      expect(numbers(move(a, a))).toEqual([10 * (i + 2)]);
    }
  });

  it("that share memory with what the function finds outside are told apart from it", () => {
    const { x, device } = setUp([1, 2]);
    const view = x.detach();
    const other = tensor([10, 20], { device });
    for (const order of [
      [x, other, x],
      [x, x, x, other, x],
      [other, x, other],
    ]) {
      const f = compile((a: Tensor) => a.add(view));
      for (const a of [...order, ...order]) expect(numbers(f(a))).toEqual(numbers(a.add(view)));
    }
  });

  it("may be the very tensor that the function finds outside", () => {
    const { x, device } = setUp([1, 2]);
    const f = compile((a: Tensor, b: Tensor) => a.add(x).mul(b));
    const [one, two] = [tensor([1, 1], { device }), tensor([10, 20], { device })];
    for (const [a, b] of [
      [x, x],
      [x, one],
      [two, one],
      [x, x],
      [two, two],
      [one, x],
    ] as const)
      expect(numbers(f(a, b))).toEqual(numbers(a.add(x).mul(b)));
  });

  it("may be what the function overwrites outside of its arguments", () => {
    const run = (isCompiled: boolean) => {
      const { device, x } = setUp([1, 2]);
      const view = x.detach();
      const body = (a: Tensor) => {
        const doubled = a.mul(2);
        x.set(x.add(1));
        return doubled.add(1);
      };
      const f = isCompiled ? compile(body) : body;
      const others = [0, 1, 2].map((i) => tensor([i, 6], { device }));
      return [...others, view, view, ...others, view].map((a) => numbers(f(a)));
    };
    expect(run(true)).toEqual(run(false));
  });

  it.each<[string, unknown]>([
    ["a function", () => 1],
    ["an object of a class", new Map()],
    ["a bigint", 1n],
    ["a typed array", new Float32Array(2)],
    ["a result with a gradient", () => parameter([1, 2]).mul(2)],
  ])("cannot be %s", (name, value) => {
    const given = name === "a result with a gradient" ? (value as () => Tensor)() : value;
    expectCode("BAD_ARGUMENT", () => compile((x: unknown) => x)(given));
  });

  it("a list that holds itself is no argument", () => {
    const list: unknown[] = [];
    list.push(list);
    expectCode("BAD_ARGUMENT", () => compile((x: unknown) => x)(list));
  });
});

describe("results", () => {
  it("are tensors of their own, in lists and objects", () => {
    const { x, device } = setUp();
    const kept = zeros([1], { device });
    const f = compile((x: Tensor) => ({ all: [x.add(1), x.add(2)], given: x, kept, name: "f", count: 2 }));
    const before = f(x);
    for (let i = 0; i < 4; i++) {
      const after = f(x.mul(10));
      expect(numbers(after.all[0]!)).toEqual([11, 21, 31]);
      expect(numbers(after.given)).toEqual([10, 20, 30]);
      expect([numbers(after.kept), after.name, after.count]).toEqual([[0], "f", 2]);
    }
    expect(before.all.map(numbers)).toEqual([
      [2, 3, 4],
      [3, 4, 5],
    ]);
  });

  it("carry no gradient", () => {
    const w = parameter([1, 2]);
    const f = compile(() => w.mul(2));
    for (let i = 0; i < 4; i++) expect(f().requiresGrad).toBe(false);
    expectCode("NO_GRADIENT", () => f().sum().backward());
  });

  it.each<[string, (x: Tensor) => unknown]>([
    ["a Map", (x) => new Map([["x", x.mul(2)]])],
    [
      "an instance of a class",
      (x) =>
        new (class Pair {
          first = x.mul(2);
        })(),
    ],
    ["a function", (x) => [() => x]],
    ["a typed array", () => ({ all: new Float32Array(2) })],
  ])("cannot be %s, and nothing is left behind", (_, body) => {
    const { device, x } = setUp();
    const before = device.memory();
    expectCode("BAD_ARGUMENT", () => compile(body)(x));
    expect(device.memory()).toEqual(before);
  });

  it("cannot be kept inside instead of returned: the second call says so", () => {
    const { device, x } = setUp();
    const seen: Tensor[] = [];
    const f = compile((x: Tensor) => {
      seen.push(keep(x.mul(2)));
    });
    f(x);
    expectCode("UNSUPPORTED", () => f(x));
    for (const tensor of seen) tensor.dispose();
    expect(device.memory()).toEqual({ bytes: 12, tensors: 1 });
  });

  it("are freed by tidy, and leave nothing behind", () => {
    const { x, device } = setUp();
    const f = compile((x: Tensor) => x.mul(2).add(1));
    tidy(() => void f(x));
    const before = device.memory();
    for (let i = 0; i < 10; i++) tidy(() => void f(x));
    expect(device.memory()).toEqual(before);
    f.dispose();
    expect(device.memory().tensors).toBe(1);
    expect(device.memory().bytes).toBe(12);
    expect(numbers(f(x))).toEqual([3, 5, 7]);
  });
});

describe("a trace is made again", () => {
  it("where what it depends on is another", () => {
    const { x } = setUp();
    const settings = { by: 2 };
    const f = compile((x: Tensor) => {
      dependsOn(() => settings.by);
      return x.mul(settings.by);
    });
    for (const by of [2, 2, 2, 2, 2, 3, 3, 3, 2]) {
      settings.by = by;
      expect(numbers(f(x))).toEqual([by, 2 * by, 3 * by]);
    }
  });

  it("where a layer is frozen, and where gradients are recorded or not", () => {
    const w = parameter([1, 2]);
    const v = parameter([3, 4]);
    const f = compile(() => {
      const loss = w.mul(v).sum();
      if (loss.requiresGrad) loss.backward();
      return loss;
    });
    const seen = () => [w, v].map(({ grad }) => grad && numbers(grad));
    const clear = () => {
      for (const p of [w, v]) p.grad = null;
    };
    for (let i = 0; i < 5; i++) {
      f();
      expect(seen()).toEqual([
        [3, 4],
        [1, 2],
      ]);
      clear();
    }
    v.requiresGrad = false;
    for (let i = 0; i < 5; i++) {
      f();
      expect(seen()).toEqual([[3, 4], null]);
      clear();
    }
    for (let i = 0; i < 3; i++) noGrad(() => f());
    expect(seen()).toEqual([null, null]);
  });

  it("where what was made once in the first call is there in the second", () => {
    const { x, device } = setUp();
    let mask: Tensor | undefined;
    const f = compile((x: Tensor) => {
      mask ??= keep(zeros([3], { device }).add(2));
      return x.mul(mask);
    });
    for (let i = 0; i < 6; i++) expect(numbers(f(x))).toEqual([2, 4, 6]);
  });

  it("more than eight times with a warning, which names the argument", () => {
    const { x } = setUp();
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const f = compile((x: Tensor, by: number) => x.mul(by));
    for (let i = 0; i < 20; i++) f(x, i);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]![0]).toMatch(/argument 1 changes from 7 to 8\. Pass a number/);
    warn.mockRestore();
  });
});

describe("gradients", () => {
  it("accumulate over calls, and are left as the function leaves them", () => {
    const w = parameter([1, 2]);
    const add = compile((by: Tensor) => w.mul(by).sum().backward());
    const update = compile(() => {
      noGrad(() => w.set(w.sub(w.grad!)));
      w.grad = null;
    });
    const one = tensor([1, 1]);
    for (let i = 0; i < 6; i++) {
      add(one);
      add(tensor([i, 2]));
      expect(numbers(w.grad!)).toEqual([i + 1, 3]);
      const before = numbers(w);
      update();
      expect(numbers(w)).toEqual([before[0]! - i - 1, before[1]! - 3]);
      expect(w.grad).toBe(null);
    }
  });

  it("are cleared where the function clears them, whatever they were", () => {
    const w = parameter([1, 2]);
    const clear = compile(() => {
      w.grad = null;
    });
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 1) w.sum().backward();
      clear();
      expect(w.grad).toBe(null);
    }
  });

  it("cannot be replaced by a hook", () => {
    const w = parameter([1, 2]);
    onGradient(w, (leaf) => {
      leaf.grad = zeros([2]);
    });
    expectCode("UNSUPPORTED", () => compile(() => w.sum().backward())());
  });

  it("of no elements are null", () => {
    const w = parameter([], { shape: [3, 0] });
    const f = compile(() => w.mean().backward());
    for (let i = 0; i < 5; i++) f();
    expect(w.grad!.shape).toEqual([3, 0]);
  });

  it("stand where hooks find them", () => {
    const w = parameter([1, 2]);
    const v = parameter([3]);
    const seen: unknown[] = [];
    onGradient(w, (leaf) => seen.push(numbers(leaf.grad!), v.grad === null));
    const f = compile((by: Tensor) => {
      w.mul(by).sum().mul(v).sum().backward();
      for (const p of [w, v]) p.grad = null;
    });
    for (let i = 1; i < 6; i++) f(tensor([i, 1]));
    expect(seen.filter((_, i) => i % 2 === 0)).toEqual([1, 2, 3, 4, 5].map((i) => [3 * i, 3]));
    expect(new Set(seen.filter((_, i) => i % 2 === 1)).size).toBe(1);
  });
});

describe("random numbers", () => {
  it("that nobody reads are drawn all the same", () => {
    const draw = (isCompiled: boolean) => {
      const { x, device } = setUp();
      const generator = new Generator(3);
      const body = (x: Tensor) => {
        randn([4], { generator, device }).dispose();
        return x.add(randn([3], { generator, device }));
      };
      const f = isCompiled ? compile(body) : body;
      return Array.from({ length: 6 }, () => numbers(f(x)));
    };
    expect(draw(true)).toEqual(draw(false));
  });
});

describe("host code", () => {
  it("runs in each call at its place, with the tensors of that call", () => {
    const { device } = setUp();
    const seen: number[][] = [];
    let ends = 0;
    const f = compile((x: Tensor) => {
      const doubled = x.mul(2);
      inEachRun([doubled], (now) => seen.push(numbers(now)));
      afterEachRun(() => ends++);
      return doubled.add(1);
    });
    for (let i = 0; i < 6; i++) expect(numbers(f(tensor([i], { device })))).toEqual([2 * i + 1]);
    expect(seen).toEqual([[0], [2], [4], [6], [8], [10]]);
    expect(ends).toBe(6);
  });

  it("may write into them", () => {
    const { device } = setUp();
    const f = compile((x: Tensor) => {
      const copy = x.clone();
      inEachRun([copy], (now) => now.set([7]));
      return copy.add(x);
    });
    for (let i = 0; i < 5; i++) expect(numbers(f(tensor([i], { device })))).toEqual([7 + i]);
  });

  it("checks indices of arguments before each run", () => {
    const logits = randn([2, 3], { generator: new Generator(1) });
    const f = compile((labels: Tensor) => crossEntropyRows(logits, labels));
    const labels = (...list: number[]) => tensor(Int32Array.from(list));
    for (let i = 0; i < 5; i++) f(labels(0, 2));
    expectCode("BAD_ARGUMENT", () => f(labels(0, 3)));
  });
});

class Model {
  readonly w = parameter([1, 2, 3]);
  readonly #w = this.w;
  forward(x: Tensor) {
    return x.mul(this.w);
  }
  apply(x: Tensor) {
    return x.mul(this.#w);
  }
}

describe("bad input", () => {
  const x = tensor([1, 2, 3]);
  const { w } = new Model();
  const table = parameter([1, 2], { shape: [2, 1] });
  const wide = tensor([1, 2, 3]);
  let outside = tensor([1]);
  it.each<[string, string, () => unknown]>([
    ["a value read inside", "UNSUPPORTED", () => compile((x: Tensor) => x.mul(x.dataSync()[0]!))(x)],
    ["another compiled function", "UNSUPPORTED", () => compile((x: Tensor) => compile((y: Tensor) => y.mul(2))(x))(x)],
    ["a second device", "UNSUPPORTED", () => compile(() => [x.mul(2), zeros([1], { device: new FakeDevice() })])()],
    ["an asynchronous function", "BAD_ARGUMENT", () => compile(async (x: Tensor) => x.mul(2))(x)],
    ["no function", "BAD_ARGUMENT", () => compile(3 as never)],
    ["a model", "BAD_ARGUMENT", () => compile(new Model() as never)],
    ["a method without its object", "BAD_ARGUMENT", () => compile(new Model().forward)(x)],
    ["a method that reads a private field", "BAD_ARGUMENT", () => compile(new Model().apply)(x)],
    ["an unknown option", "BAD_ARGUMENT", () => compile((x: Tensor) => x, { checks: "never" } as never)],
    ["an unknown check", "BAD_ARGUMENT", () => compile((x: Tensor) => x, { check: "often" as never })],
    ["explain before the first call", "BAD_STATE", () => compile((x: Tensor) => x).explain()],
  ])("%s: %s, and eager code goes on", (_, code, run) => {
    expectCode(code as "UNSUPPORTED", run);
    expect(numbers(x.mul(2))).toEqual([2, 4, 6]);
    const f = compile((x: Tensor) => x.mul(2));
    for (let i = 0; i < 4; i++) expect(numbers(f(x))).toEqual([2, 4, 6]);
  });

  it.each<[string, RegExp, () => unknown]>([
    ["a model", /got a Model\. Write compile\(\(x\) => model\.forward\(x\)\)\./, () => compile(new Model() as never)],
    ["a method", /method that failed: .*\. Write compile\(\(x\) =>/, () => compile(new Model().forward)(x)],
    [
      "row-sparse gradients left",
      /zeroGrad\(\) inside, after optimizer\.step\(\)/,
      () =>
        compile((indices: Tensor) => {
          table.grad = null;
          gatherSparse(table, indices).sum().backward();
        })(tensor([0], { dtype: "i32" })),
    ],
    [
      "a result without gradient",
      /call backward\(\) inside/,
      () => compile((x: Tensor) => w.mul(x).sum())(x).backward(),
    ],
  ])("%s: the message has the cure", (_, message, run) => expect(run).toThrow(message));

  it("a function that throws midway leaves nothing behind", () => {
    const { device, x } = setUp();
    const before = device.memory();
    const f = compile((x: Tensor) => {
      x.mul(2);
      throw new Error("midway");
    });
    for (let i = 0; i < 3; i++) expect(() => f(x)).toThrow("midway");
    expect(device.memory()).toEqual(before);
  });

  it.each<[string, (i: number) => (x: Tensor) => Tensor, RegExp]>([
    ["a number", (i) => (x) => x.mul(i), /mul.*compile\.test\.ts:\d+/],
    ["a branch", (i) => (x) => (i > 2 ? x.add(1) : x.mul(2)), /add.*was mul/],
    ["a tensor", () => (x) => x.mul(outside), /mul/],
    ["a captured shape", (i) => (x) => x.mul(i > 2 ? wide : outside), /another tensor, shape or dtype.*dispose\(\)/],
    ["a missing launch", (i) => (x) => (i > 2 ? x.mul(2) : x.mul(2).add(1)), /add did not come/],
  ])("%s that changes is found by a later call, with its line", (_, make, message) => {
    let i = 0;
    const f = compile((x: Tensor) => make(i)(x));
    expect(() => {
      for (; i < 10; i++) {
        if (i > 2) outside = tensor([i]);
        f(x);
      }
    }).toThrow(message);
    expectCode("CHANGED", () => {
      const g = compile((x: Tensor) => make(i)(x));
      for (i = 0; i < 10; i++) {
        if (i > 2) outside = tensor([i]);
        g(x);
      }
    });
  });
});

describe("what reviewers found", () => {
  it("two readers of a product that has an epilogue", () => {
    const w = randn([32, 32], { generator: new Generator(1) });
    const f = compile((x: Tensor) => {
      const gate = x.matmul(w).sigmoid();
      return [gate.abs(), gate.mul(0.5)];
    });
    const x = randn([32, 32], { generator: new Generator(2) });
    const eager = [x.matmul(w).sigmoid().abs(), x.matmul(w).sigmoid().mul(0.5)].map(numbers);
    for (let i = 0; i < 5; i++) expect(f(x).map(numbers)).toEqual(eager);
  });

  it("random numbers that leave the function", () => {
    const draw = (isCompiled: boolean) => {
      const generator = new Generator(5);
      const body = () => randn([3], { generator });
      const f = isCompiled ? compile(body) : body;
      return Array.from({ length: 6 }, () => numbers(f()));
    };
    expect(draw(true)).toEqual(draw(false));
  });

  it("functions that leave gradients, and others that clear them, run their traces", () => {
    const w = parameter([1, 2]);
    let runs = 0;
    const before = compile((x: Tensor) => {
      runs++;
      w.mul(x).sum().backward();
    });
    const after = compile(() => {
      runs++;
      noGrad(() => w.set(w.sub(w.grad!)));
      w.grad = null;
    });
    const x = tensor([1, 2]);
    for (let i = 1; i <= 30; i++) {
      before(x);
      after();
      expect(numbers(w)).toEqual([1 - i, 2 - 2 * i]);
    }
    expect(runs).toBeLessThan(16);
  });

  it("inputs that share memory only in a later call", () => {
    const w = parameter([1, 2]);
    const f = compile((x: Tensor) => {
      const doubled = x.mul(2);
      w.mul(3).sum().backward();
      return doubled.mul(5);
    });
    w.grad = tensor([1, 1]);
    for (let i = 0; i < 4; i++) expect(numbers(f(tensor([i, 1])))).toEqual([10 * i, 10]);
    expect(numbers(f(w.grad!))).toEqual([130, 130]);
  });

  it("views of what was there before come as new tensors", () => {
    const { x } = setUp();
    const f = compile(() => x.reshape([3, 1]));
    for (let i = 0; i < 5; i++) {
      const view = f();
      expect(numbers(view)).toEqual([1, 2, 3]);
      view.dispose();
    }
  });

  it("hooks that come and go", () => {
    const w = parameter([1, 2]);
    const seen: string[] = [];
    const f = compile(() => {
      w.sum().backward();
      w.grad = null;
    });
    let remove = onGradient(w, () => seen.push("a"));
    for (let i = 0; i < 5; i++) f();
    remove();
    remove = onGradient(w, () => seen.push("b"));
    for (let i = 0; i < 5; i++) f();
    remove();
    f();
    expect(seen.join("")).toBe("aaaaabbbbb");
  });

  it("an item() that is awaited by nobody", async () => {
    const reads: ((x: Tensor) => unknown)[] = [(x) => x.item(), (x) => x.data(), (x) => x.bytes(), (x) => x.print()];
    for (const read of reads) expectCode("UNSUPPORTED", () => compile((x: Tensor) => void read(x))(tensor([1])));
    await new Promise((resolve) => setTimeout(resolve)); // a rejected promise would fail this test
  });

  it("an empty tensor alone", () => {
    const f = compile(() => zeros([0]));
    for (let i = 0; i < 4; i++) expect(f().shape).toEqual([0]);
  });
});

describe("passes", () => {
  it("fuse maps, drop what nobody reads and plain copies, and share memory", () => {
    const { device } = setUp();
    const x = randn([64, 8], { device, generator: new Generator(1) });
    const bias = randn([8], { device, generator: new Generator(2) });
    const body = (x: Tensor) => {
      x.mul(3); // nobody reads it
      const hidden = x.clone().add(bias).relu().mul(0.5);
      return hidden.reshape([8, 64]).add(1).softmax(-1);
    };
    const [fused, plain] = [compile(body), compile(body, { passes: false })];
    for (let i = 0; i < 4; i++) expect(numbers(fused(x))).toEqual(numbers(plain(x)));
    expect(fused.explain().launches).toBe(2);
    expect(plain.explain().launches).toBe(7);
    expect(fused.explain().fused).toBe(5);
    expect(fused.explain().peakBytes).toBeLessThan(plain.explain().peakBytes);
    expect(fused.explain().text(0)).toMatch(/add\(.*b1.*\)/);
  });

  it("sum gradients of slices without filling them up", () => {
    const { device } = setUp();
    const w = parameter([1, -2, 3, -0, 5, 6, 7], { device });
    const train = (options: CompileOptions) => {
      const f = compile((x: Tensor) => {
        const hidden = w.mul(x);
        const [a, b, c] = [0, 2, 4].map((at) => hidden.slice(at, at + 2)) as [Tensor, Tensor, Tensor];
        a.mul(b).sum().add(c.pow(2).sum()).backward();
        const grad = w.grad!.mul(1);
        w.grad = null;
        return grad;
      }, options);
      const x = tensor([1, 1, -1, 0, 2, 1, 1], { device });
      return { seen: Array.from({ length: 4 }, () => numbers(f(x))), launches: f.explain().launches };
    };
    const [split, plain] = [train({}), train({ passes: false })];
    expect(split.seen).toEqual(plain.seen);
    expect([split.launches, plain.launches]).toEqual([8, 25]);
  });

  it("compute gradients of slices that fill a whole in their places", () => {
    const { device } = setUp();
    const w = parameter([1, -2, 3, -0, 5, 6], { shape: [6, 1], device });
    const train = (options: CompileOptions) => {
      const f = compile((x: Tensor) => {
        const hidden = w.matmul(x);
        const [ab, c] = [hidden.slice(0, 4), hidden.slice(4, 6)];
        // Both have the same gradient: their sum is split, and is a part itself.
        ab.slice(0, 2).add(ab.slice(2, 4)).mul(c).sum().backward();
        const grad = w.grad!.mul(1);
        w.grad = null;
        return grad;
      }, options);
      const x = tensor([[2, -3]], { device });
      return { seen: Array.from({ length: 4 }, () => numbers(f(x))), launches: f.explain().launches };
    };
    const [joined, plain] = [train({}), train({ passes: false })];
    expect(joined.seen).toEqual(plain.seen);
    expect([joined.launches, plain.launches]).toEqual([8, 24]);
  });

  it("read and write heads of attention where they are", async () => {
    const device = await init("js");
    const w = parameter(randn([6, 18], { device, generator: new Generator(3) }));
    const train = (options: CompileOptions) => {
      const f = compile((x: Tensor) => {
        const heads = x.matmul(w).reshape([2, 4, 3, 2, 3]).permute([2, 0, 3, 1, 4]);
        const [q, k, v] = [0, 1, 2].map((i) => heads.slice(i, i + 1).reshape([2, 2, 4, 3])) as [Tensor, Tensor, Tensor];
        const seen = fusedAttention(q, k, v, { scale: 0.5, isCausal: true })!.permute([0, 2, 1, 3]);
        seen.reshape([8, 6]).matmul(x, { transposeB: true }).sum().backward();
        const grad = w.grad!.mul(1);
        w.grad = null;
        return grad;
      }, options);
      const x = randn([8, 6], { device, generator: new Generator(4) });
      const found = Array.from({ length: 4 }, () => numbers(f(x)));
      const { launches, text } = f.explain();
      return { found, kinds: Array.from({ length: launches }, (_, i) => text(i).split(" ")[0]) };
    };
    const [placed, plain] = [train({}), train({ passes: false })];
    expect(placed.found).toEqual(plain.found);
    expect(placed.kinds).not.toContain("copy");
    expect(plain.kinds.filter((kind) => kind === "copy")).toHaveLength(10);
  });

  it("add gradients up within norms, and biases' within products", async () => {
    const device = await init("js");
    const random = (shape: number[], seed: number) => randn(shape, { device, generator: new Generator(seed) });
    const [w, b, scale] = [random([5, 5], 1), random([5], 2), random([5], 3)].map((x) => parameter(x)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const train = (options: CompileOptions) => {
      const f = compile((x: Tensor) => {
        const hidden = x.matmul(w);
        const normal = layerNorm(hidden, scale, b);
        hidden.add(normal.matmul(w).add(b)).pow(2).sum().backward();
        const grads = [w, b, scale].map((leaf) => leaf.grad!.mul(1));
        for (const leaf of [w, b, scale]) leaf.grad = null;
        return grads;
      }, options);
      const x = random([7, 5], 4);
      const found = Array.from({ length: 4 }, () => f(x).map(numbers));
      return { found, launches: f.explain().launches };
    };
    const [fused, plain] = [train({}), train({ passes: false })];
    expect(fused.found).toEqual(plain.found);
    expect([fused.launches, plain.launches]).toEqual([14, 21]);
  });

  it("are explained, programs of rows too", () => {
    const f = compile((x: Tensor) => x.softmax(-1));
    f(tensor([[1, 2]], { device: setUp().device }));
    expect(f.explain().text(0)).toContain("y = mul(weight(sub(x, largest(x))), ");
  });
});

/** 16-bit training: one launch of few bytes, the same words on every exact device, and those of float32 masters stepped by PyTorch. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { execFileSync } from "node:child_process";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { type Device, type DType, Generator, init, listDevices, parameter, randn, type Tensor } from "@opt/core";
import { torchPython, withoutTorch } from "@opt/testkit";
import { NAdam } from "@opt/nadam";
import { beforeAll, describe, expect, it, vi } from "vitest";

const SIZES = [1027, 1, 3000];
const STEPS = 20;

const CASES = [
  { optimizer: AdamW, name: "AdamW", options: { lr: 0.01, weightDecay: 0.1 } },
  { optimizer: Adam, name: "Adam", options: { lr: 0.02, amsgrad: true, weightDecay: 0.01, maximize: true } },
  { optimizer: NAdam, name: "NAdam", options: { lr: 0.01, betas: [0.4, 0.99] as const } },
];
type Case = (typeof CASES)[number];

/** A tensor's words, as stored. */
async function words(x: Tensor): Promise<number[]> {
  const { memory, byteOffset, length } = x.memorySlice();
  const bytes = await x.device.backend.read(memory, byteOffset, length * 2);
  return [...new Uint16Array(bytes.buffer, bytes.byteOffset, length)];
}

/** Parameters and gradients of each step, and the parameters' words after the last. */
async function train({ optimizer: Optimizer, options }: Case, dtype: DType, device: Device) {
  const generator = new Generator(11);
  const values = () => SIZES.map((size) => randn([size], { generator, device: "js" }).to(dtype));
  const params = values().map((value) => parameter(value.dataSync(), { dtype, device }));
  const start = await Promise.all(params.map(words));
  const optimizer = new Optimizer(params, options);
  const gradients: number[][][] = [];
  const launches = vi.spyOn(device.backend, "launch");
  let kinds: string[] = [];
  let bytes = 0;
  for (let step = 0; step < STEPS; step++) {
    for (const [i, value] of values().entries()) params[i]!.grad = value.to(device);
    gradients.push(await Promise.all(params.map((param) => words(param.grad!))));
    launches.mockClear();
    optimizer.step();
    kinds = launches.mock.calls.map(([{ kind }]) => kind);
    const [launch] = launches.mock.calls.map(([each]) => each);
    if (launch?.kind === "rule") bytes = bytesPerElement(launch.kernel.spec);
  }
  launches.mockRestore();
  return { start, gradients, end: await Promise.all(params.map(words)), kinds, bytes };
}

/** What a rule's launch reads and writes of each element. */
function bytesPerElement({ rule, stored = [] }: { rule: { program: { nodes: readonly { op: string; value: number }[]; outputs: readonly { slot: number }[] } }; stored?: readonly string[] }) {
  const size = (slot: number) => (stored[slot] === "f32" ? 4 : 2);
  const { nodes, outputs } = rule.program;
  const read = nodes.filter(({ op }) => op === "buffer").reduce((sum, { value }) => sum + size(value), 0);
  const mirror = size(stored.length - 1);
  return outputs.reduce((sum, { slot }) => sum + size(slot), read + mirror);
}

const js = await init("js");
const others = (await listDevices()).filter(({ name, available }) => ["wasm", "cpu"].includes(name) && available);

describe.each(["bf16", "f16"] as const)("%s", (dtype) => {
  it.each(CASES)("$name is one launch", async (each) => {
    const { kinds, bytes } = await train(each, dtype, js);
    expect(kinds).toEqual(["rule"]);
    expect(bytes).toBe(each.options && "amsgrad" in each.options ? 36 : 28);
  });

  it.each(others.flatMap(({ name }) => CASES.map((each) => [each.name, name, each] as const)))(
    "%s has the same words on %s",
    async (_, name, each) => {
      const [expected, actual] = [await train(each, dtype, js), await train(each, dtype, await init(name))];
      expect(actual.end).toEqual(expected.end);
      expect(actual.kinds).toEqual(["rule"]);
    },
  );
});

// PyTorch's vectorised square root is 1 ulp off on some processors: the correctly rounded one stands in for it.
const torchProgram = `
import json, re, sys, torch
torch.Tensor.sqrt = lambda self: torch.sqrt(self.double()).to(self.dtype)
types = {"bf16": torch.bfloat16, "f16": torch.float16}
def run(case):
    kind = types[case["dtype"]]
    stored = lambda words: torch.tensor(words, dtype=torch.int32).to(torch.int16).view(kind)
    masters = [stored(words).float() for words in case["start"]]
    options = {re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key): value for key, value in case["options"].items()}
    optimizer = getattr(torch.optim, case["name"])(masters, foreach=False, **options)
    for step in case["gradients"]:
        for master, words in zip(masters, step): master.grad = stored(words).float()
        optimizer.step()
    return [(master.to(kind).view(torch.int16).to(torch.int32) & 0xffff).tolist() for master in masters]
print(json.dumps([run(case) for case in json.load(sys.stdin)]))
`;

describe.skipIf(torchPython === undefined)(`float32 masters stepped by PyTorch${withoutTorch}`, () => {
  const runs = CASES.flatMap((each) => (["bf16", "f16"] as const).map((dtype) => ({ ...each, dtype })));
  let ours: Awaited<ReturnType<typeof train>>[] = [];
  let theirs: number[][][] = [];
  beforeAll(async () => {
    for (const each of runs) ours.push(await train(each, each.dtype, js));
    const input = runs.map(({ name, options, dtype }, i) => ({ ...ours[i], name, options, dtype }));
    theirs = JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], { input: JSON.stringify(input), maxBuffer: 2 ** 28 }).toString());
  }, 300_000);

  it.each(runs.map(({ name, dtype }, i) => [name, dtype, i] as const))("give %s the same words in %s", (_, __, i) => {
    expect(ours[i]!.end).toEqual(theirs[i]);
  });
});

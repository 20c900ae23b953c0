import { execFileSync } from "node:child_process";
import { type Tensor, tensor } from "@opt/core";
import { expectCode, seededArray, torchPython, withoutTorch } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { BatchNorm1d, Dropout, InstanceNorm1d, Linear, type Module, Sequential, updateBatchNorm } from "../../index";

const batches = [4, 2, 7].map((size, seed) => [...seededArray("f32", 3 * size, { seed })]);
const tensors = () => batches.map((values) => tensor(values, { shape: [values.length / 3, 3] }));

function begin() {
  const model = new Sequential(new Linear(3, 2), new BatchNorm1d(2, { momentum: 0.3 }), new Linear(2, 2));
  const second = new BatchNorm1d(2, { affine: false });
  const all = new Sequential(...model, second);
  [...all.parameters()].forEach((x, i) => {
    x.set(tensor(seededArray("f32", x.size, { seed: 10 + i }), { shape: x.shape }));
  });
  return { all, norms: [all.at(1) as BatchNorm1d, second] as const };
}

const read = (norm: BatchNorm1d) =>
  [norm.running_mean, norm.running_var, norm.num_batches_tracked].map((x) => [...x!.dataSync()]);

const torchProgram = `
import json, sys, torch
batches, weights = json.load(sys.stdin)
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2, momentum=0.3), torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2, affine=False))
with torch.no_grad():
    for p, w in zip(model.parameters(), weights): p.copy_(torch.tensor(w).reshape(p.shape))
data = [torch.tensor(b).reshape(-1, 3) for b in batches]
model(data[0] * 100)
torch.optim.swa_utils.update_bn([(x, 1) for x in data], model)
print(json.dumps([[x.flatten().tolist() for x in (m.running_mean, m.running_var, m.num_batches_tracked)] for m in (model[1], model[3])]))
`;

describe("updateBatchNorm", () => {
  it.skipIf(torchPython === undefined)(`has the numbers of torch's update_bn${withoutTorch}`, async () => {
    const { all, norms } = begin();
    const weights = all.parameters().map((x) => [...x.dataSync()]);
    const input = JSON.stringify([batches, weights]);
    const expected = JSON.parse(execFileSync(torchPython as string, ["-c", torchProgram], { input, encoding: "utf8" }));
    all.forward(tensors()[0]!.mul(100));
    await updateBatchNorm(
      all,
      tensors().map((x) => [x, 1]),
    );
    norms.forEach((norm, i) => {
      read(norm).forEach((values, j) => {
        values.forEach((value, k) => {
          expect(value).toBeCloseTo(expected[i][j][k], 5);
        });
      });
    });
  });

  it("forgets what was there, and averages the means and unbiased variances of the batches", async () => {
    const norm = new BatchNorm1d(1, { momentum: 0.5 });
    norm.forward(tensor([[100], [300]]));
    await updateBatchNorm(norm, [tensor([[1], [2]]), tensor([[3], [5]])]);
    const expected = [[2.75], [1.25], [2]];
    expect(read(norm)).toEqual(expected);
    expect(norm.momentum).toBe(0.5);
    async function* later(): AsyncGenerator<Tensor> {
      yield tensor([[1], [2]]);
      yield tensor([[3], [5]]);
    }
    await updateBatchNorm(norm, later());
    expect(read(norm)).toEqual(expected);
  });

  it("puts each layer's mode and momentum back, also after an error; dropout and batch norms train meanwhile", async () => {
    const { all, norms } = begin();
    const drop = new Dropout(0.5);
    const model = new Sequential(drop, ...all).eval();
    norms[0].train();
    const seen: unknown[] = [];
    drop.onForward(() => void seen.push(drop.training, norms[1].training, norms[0].momentum));
    const modes = () => model.modules().map(({ training }) => training);
    const before = [modes(), norms.map(({ momentum }) => momentum)];
    await updateBatchNorm(model, tensors());
    expect([modes(), norms.map(({ momentum }) => momentum)]).toEqual(before);
    expect(seen.slice(0, 3)).toEqual([true, true, null]);
    await expectCode("BAD_ARGUMENT", () => updateBatchNorm(model, [1 as never]));
    expect([modes(), norms.map(({ momentum }) => momentum)]).toEqual(before);
  });

  it("looks at no data without a batch norm, as instance norms are not meant", async () => {
    const norm = new InstanceNorm1d(2, { trackRunningStats: true });
    norm.running_mean!.set([3, 3]);
    await updateBatchNorm(norm, [null as never]);
    expect([...norm.running_mean!.dataSync()]).toEqual([3, 3]);
  });

  it("leaves nothing behind, and rejects what is no module or no data before it changes anything", async () => {
    const { all, norms } = begin();
    const data = tensors();
    all.forward(data[0]!);
    const before = [norms.map(read), data[0]!.device.memory().tensors];
    await expectCode("BAD_ARGUMENT", () => updateBatchNorm({} as Module, data));
    await expectCode("BAD_ARGUMENT", () => updateBatchNorm(all, 1 as never));
    expect(norms.map(read)).toEqual(before[0]);
    await updateBatchNorm(all, data);
    expect(data[0]!.device.memory().tensors).toBe(before[1]);
  });
});

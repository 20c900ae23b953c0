import { expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { dcpFolder, torchZip } from "../../../testing/files/made-files";
import { openFiles } from "../../../testing/open-files";
import { readFloats } from "../../../testing/read-tensor";

const text = (value: string) => new TextEncoder().encode(value);
const names = [
  "w",
  "optimizer.state.exp_avg.w",
  "chained_0.optimizer.state.fp32_param.w",
  "optimizer.state.exp_avg.gone",
];
const step = {
  ...dcpFolder({ names }),
  "common.pt": torchZip({ iteration: 12, seed: 3 }, {}),
  "metadata.json": text("{}"),
};

it("reads Megatron's torch_dist, the newest step or the one asked for", async () => {
  const inside = Object.fromEntries(Object.entries(step).map(([name, bytes]) => [`iter_0000012/${name}`, bytes]));
  for (const files of [step, { "latest_checkpointed_iteration.txt": text("12"), ...inside }]) {
    const source = await openFiles(files, "");
    expect(source).toMatchObject({ format: "Megatron torch_dist", step: 12, values: { seed: 3, epoch: 3 } });
    expect(await readFloats(source, "w")).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect([...source.tensors.keys()]).toEqual(["w", "w.exp_avg", "w.master_param", "optimizer.state.exp_avg.gone"]);
    expect(source.tensors.get("w.exp_avg")).toMatchObject({ role: "state", follows: "w" });
    await source.close();
  }
  await expectCode("MISSING", openFiles({ "latest_checkpointed_iteration.txt": text("12") }, ""));
});

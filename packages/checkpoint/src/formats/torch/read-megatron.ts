/** Megatron's `torch_dist`: a DCP folder beside `common.pt`, which holds what all ranks have alike. Layers are the first axis of their tensors. */
import { redescribed } from "../../format/source";
import { isCount } from "../../layout/counts";
import { join } from "../../stores/path";
import { missing } from "../bytes/errors";
import { formatReader } from "../bytes/reader";
import { readTorch } from "./read";
import { readDcp } from "./read-dcp";

const STATE = /^(?:chained_\d+\.)?optimizer\.state\.(\w+)\.(.+)$/;
const STEP = /^iter_(\d+)$/;

export const megatronReader = formatReader("Megatron torch_dist", async ({ path, file, list, options }) => {
  const entries = await list(path);
  const isStep = entries.some(({ name }) => name === ".metadata");
  const steps = entries.flatMap(({ name }) => (STEP.test(name) ? [name] : [])).sort();
  const step = steps.findLast((name) => options.step === undefined || Number(STEP.exec(name)![1]) === options.step);
  if (!isStep && step === undefined) throw missing(path, "the folder iter_<step> is not there");
  const folder = isStep ? path : join(path, step!);
  const found = await readDcp({ path: folder, file, options });
  const common = await readTorch(await file(join(folder, "common.pt")));
  const names = new Set(found.tensors.map(({ name }) => name));
  const tensors = found.tensors.map((tensor) => {
    const [, state, follows] = STATE.exec(tensor.name) ?? [];
    if (follows === undefined || !names.has(follows)) return tensor;
    const name = `${follows}.${state === "fp32_param" ? "master_param" : state}`;
    return redescribed(tensor, { name, role: "state", follows });
  });
  const values = { ...found.values, ...common.values };
  const skipped = [...found.skipped, ...common.skipped];
  return { tensors, values, unreadable: found.unreadable, skipped, step: [values.iteration, found.step].find(isCount) };
});

/** Steps as DeepSpeed lays them out: `w` of [3, 5] from 1 on, `b` of [3] from 21 on; `exp_avg` is 100 more. */
import { floats, torchTensorCall, torchZip } from "./made-files";
import { Call, Name, Tuple } from "./pickles";

type Files = Record<string, Uint8Array>;
const WEIGHTS = { w: Array.from({ length: 15 }, (_, i) => i + 1), b: [21, 22, 23] };
const SHAPES = { w: [3, 5], b: [3] };

const size = (shape: readonly number[]) => new Call(new Name("torch", "Size"), [new Tuple(...shape)]);

/** A file of an object whose lists of numbers under `tensors` are float32 tensors. */
function torchFile(
  build: (tensor: (values: readonly number[], shape?: readonly number[]) => Call) => unknown,
): Uint8Array {
  const storages: Files = {};
  const tensor = (values: readonly number[], shape: readonly number[] = [values.length]): Call => {
    const key = String(Object.keys(storages).length);
    storages[key] = floats(...values);
    return torchTensorCall(key, shape);
  };
  return torchZip(build(tensor), storages);
}

function modelFile(fragment: readonly number[], shape?: readonly number[], shapes = SHAPES): Uint8Array {
  return torchFile((tensor) => ({
    module: { w: tensor([0]), b: tensor([0]), mean: tensor([9, 8]), tied: tensor([0]) },
    buffer_names: ["mean"],
    param_shapes: [{ w: size(shapes.w), b: size(shapes.b) }],
    frozen_param_shapes: { f: size([2, 1]) },
    frozen_param_fragments: { f: tensor(fragment, shape) },
    shared_params: { tied: "w" },
    global_steps: 7,
    epoch: 2,
  }));
}

const groups = [{ lr: 0.5, weight_decay: 0.25, params: [0] }];

/** Stages 1 and 2: the group's 18 elements and 6 of padding, cut for `ranks`. `padding`: how many there are instead, or (negative) how many elements are missing. */
export function zero2Folder({ ranks = 4, padding = 6, count = ranks as number | number[] } = {}): Files {
  const flat = (plus: number) => {
    const all = [...WEIGHTS.w, ...WEIGHTS.b].map((x) => x + plus);
    return padding < 0 ? all.slice(0, padding) : [...all, ...new Array<number>(padding).fill(-1)];
  };
  const files: Files = { "mp_rank_00_model_states.pt": modelFile([5, 6], [2, 1]) };
  for (let rank = 0; rank < ranks; rank++) {
    files[`zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`] = torchFile((tensor) => {
      const part = (plus: number) => {
        const all = flat(plus);
        return tensor(all.slice((rank * all.length) / ranks, ((rank + 1) * all.length) / ranks));
      };
      const state = { 0: { step: tensor([7], []), exp_avg: part(100) } };
      return {
        optimizer_state_dict: {
          single_partition_of_fp32_groups: [part(0)],
          base_optimizer_state: { state: new Map([[0, state[0]]]), param_groups: groups },
          zero_stage: 2,
          partition_count: count,
        },
      };
    });
  }
  return files;
}

/** Stage 3: of `w` each of four ranks holds 4 elements and of `b` one, the last of them padding; cut after 3 of the 5. */
export function zero3Folder(): Files {
  const files: Files = {};
  const part = (values: readonly number[], rank: number): number[] => {
    const length = Math.ceil(values.length / 4);
    return Array.from({ length }, (_, i) => values[rank * length + i] ?? -1);
  };
  for (let rank = 0; rank < 4; rank++) {
    files[`zero_pp_rank_${rank}_mp_rank_00_model_states.pt`] = modelFile(part([5, 6], rank));
    files[`zero_pp_rank_${rank}_mp_rank_00_optim_states.pt`] = torchFile((tensor) => {
      const both = (plus: number) => {
        const all = [...part(WEIGHTS.w, rank), ...part(WEIGHTS.b, rank)].map((x) => x + plus);
        return [all.slice(0, 3), all.slice(3)].map((values) => tensor(values));
      };
      const [first, second] = both(100);
      return {
        optimizer_state_dict: {
          fp32_flat_groups: both(0),
          optimizer_state_dict: {
            state: new Map([
              [0, { step: 7, exp_avg: first }],
              [1, { step: 7, exp_avg: second }],
            ]),
            param_groups: groups,
          },
          zero_stage: 3,
          partition_count: 4,
        },
      };
    });
  }
  return files;
}

/** Universal; `isFlat`: as stage 3 writes it. Other shapes take as many of the numbers. */
export function universalFolder(isFlat = false, shapes = SHAPES): Files {
  const files: Files = {
    "mp_rank_00_model_states.pt": modelFile([5, 6], [2, 1], shapes),
    "zero/optimizer_state.pt": torchFile(() => ({ param_groups: groups })),
  };
  for (const name of ["w", "b"] as const) {
    for (const [state, plus] of [
      ["fp32", 0],
      ["exp_avg", 100],
    ] as const) {
      const count = shapes[name].reduce((product, extent) => product * extent, 1);
      const values = WEIGHTS[name].slice(0, count).map((x) => x + plus);
      files[`zero/${name}/${state}.pt`] = torchFile((tensor) =>
        isFlat ? tensor(values) : { param: tensor(values, shapes[name]), cat_dim: 0 },
      );
    }
    files[`zero/${name}/step.pt`] = torchFile((tensor) => (isFlat ? tensor([7], []) : 7));
  }
  return files;
}

export const ZERO_TENSORS: Record<string, number[]> = {
  ...WEIGHTS,
  "w.exp_avg": WEIGHTS.w.map((x) => x + 100),
  "b.exp_avg": [121, 122, 123],
  ...{ "w.step": [7], "b.step": [7], mean: [9, 8], f: [5, 6], tied: WEIGHTS.w },
};

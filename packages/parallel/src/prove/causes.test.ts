/** Faults of a resume, each named by what differs first and by its usual cause; and runs without one. */
import { enableQ8, init, parameter } from "@opt/core";
import { describe, expect, it } from "vitest";
import { differenceOf, type Fault, OPTIONS, type Saved } from "../../testing/resumes";

await init("js");
enableQ8();

const eachState = (saved: Saved, change: (state: Saved, name: string) => void) => {
  for (const [name, state] of Object.entries(saved.optimizer.state as Saved)) change(state, name);
};
const without = (key: string) => (saved: Saved) => eachState(saved, (state) => state[key].set(state[key].mul(0)));
const swap = (from: Saved, a: string, b: string) => void Object.assign(from, { [a]: from[b], [b]: from[a] });

const FAULTS: Readonly<Record<string, Fault & { readonly names: RegExp; readonly cause: RegExp }>> = {
  "cold Adam": { forgets: ["optimizer"], names: /step$/, cause: /begins cold/ },
  "cold Adam, with nothing recorded after loading": {
    has: ["no record after loading"],
    forgets: ["optimizer"],
    names: /step$/,
    cause: /begins cold/,
  },
  "one moment dropped": { change: without("exp_avg_sq"), names: /exp_avg_sq$/, cause: /only exp_avg_sq differs/ },
  "step off by one": { change: (saved) => void saved.position.step++, names: /step$/, cause: /off by one/ },
  "a step counter off by one": {
    change: (saved) => eachState(saved, (state) => void state.step++),
    names: /optimizer.*step$/,
    cause: /counter was saved before or after/,
  },
  "schedule not restored": { forgets: ["schedule"], names: /^schedule/, cause: /schedule was not restored/ },
  "warm-up restarted": { has: ["warmup"], forgets: ["schedule"], names: /^schedule/, cause: /warm-up runs again/ },
  "sampler shifted": {
    change: (saved) => {
      saved.loader.taken += 4;
    },
    names: /^loader/,
    cause: /place in the data/,
  },
  "sampler shifted, and not recorded": {
    has: ["unrecorded loader"],
    change: (saved) => {
      saved.loader.taken += 4;
    },
    names: /^samples/,
    cause: /samples of step 11.* off by 1/,
  },
  "shuffled with another seed": {
    has: ["unrecorded loader"],
    change: (saved) => {
      saved.loader.seed = 77;
    },
    names: /^samples/,
    cause: /another seed/,
  },
  "epoch off by one": { change: (saved) => void saved.position.epoch++, names: /epoch/, cause: /count of epochs/ },
  "scaler's scale lost": {
    has: ["scaler"],
    change: (saved) => {
      saved.scaler.scale = 8;
    },
    names: /^scaler.scale/,
    cause: /scaler was not restored/,
  },
  "scaler's growth counter lost": {
    has: ["scaler"],
    change: (saved) => {
      saved.scaler._growth_tracker = 0;
    },
    names: /growth_tracker/,
    cause: /count of good steps/,
  },
  "averages of old weights": {
    has: ["ema"],
    change: (saved, { older }) => {
      saved.ema = older.ema;
    },
    names: /^ema/,
    cause: /averaged weights/,
  },
  "count of averages lost": {
    has: ["swa"],
    change: (saved) => {
      saved.swa.n_averaged = 0;
    },
    names: /n_averaged/,
    cause: /number of averaged/,
  },
  "generator not restored": {
    has: ["dropout"],
    forgets: ["random"],
    names: /^random/,
    cause: /generator was not restored/,
  },
  "a hidden generator": { has: ["own dropout"], names: /^model/, cause: /checkpoint lacks.*generator of its own/ },
  "saved in the background": {
    change: (saved, { newer }) => Object.assign(saved, { model: newer.model }),
    names: /^model/,
    cause: /in the background/,
  },
  "older weights": {
    change: (saved, { older }) => Object.assign(saved, { model: older.model }),
    names: /^model/,
    cause: /older copy/,
  },
  "tied weights split": { has: ["tied"], after: ({ model }) => untie(model), names: /^model/, cause: /tied weights/ },
  "weight decay changed": {
    change: (saved) => {
      saved.optimizer.groups[0].weightDecay = 0.1;
    },
    names: /weightDecay$/,
    cause: /weight decay/,
  },
  "a group's lr lost": {
    has: ["groups"],
    after: ({ parts }) => sameRates(parts.optimizer),
    names: /groups.1.lr$/,
    cause: /group's learning rate/,
  },
  "buffers not saved": {
    has: ["norm"],
    change: (saved) => forEachBuffer(saved),
    names: /running_mean|num_batches/,
    cause: /BatchNorm/,
  },
  "state given to another": {
    change: ({ optimizer: { state } }) => swap(state, "2.weight", "4.weight"),
    names: /weight.exp_avg/,
    cause: /another order/,
  },
  "two parameters swapped": {
    change: ({ model }) => swap(model, "2.weight", "4.weight"),
    names: /^model.*weight/,
    cause: /another order/,
  },
  "window of clipping lost": { has: ["clip"], forgets: ["clip"], names: /^clip/, cause: /gradients are clipped/ },
  "partial gradients lost": { has: ["accumulate"], forgets: ["gradients"], names: /^gradients/, cause: /added up/ },
  "master weights lost": {
    has: ["bf16"],
    change: (saved) =>
      eachState(saved, (state) => void state.master_param.set(state.master_param.to("bf16").to("f32"))),
    names: /master_param$/,
    cause: /master weights/,
  },
  "8-bit state packed again": {
    has: ["q8"],
    change: (saved) => eachState(saved, (state) => void state.exp_avg.set(state.exp_avg.to("bf16").to("f32"))),
    names: /exp_avg$/,
    cause: /packed again/,
  },
  "plateau's count lost": {
    has: ["plateau"],
    change: (saved) => Object.assign(saved.schedule, { badEpochs: 0 }),
    names: /badEpochs/,
    cause: /plateau/,
  },
  "plateau's best lost": {
    has: ["plateau"],
    change: (saved) => Object.assign(saved.schedule, { best: 1e9 }),
    names: /best/,
    cause: /plateau/,
  },
  "early stopping's counter lost": {
    has: ["early"],
    change: (saved) => {
      saved.early_stopping.wait += 2;
    },
    names: /wait/,
    cause: /early stopping/,
  },
  "slow weights lost": {
    has: ["lookahead"],
    change: (saved, { newer }) => eachState(saved, (state, name) => void state.slow_param.set(newer.model[name])),
    names: /slow_param$/,
    cause: /slow weights/,
  },
  "greatest moments lost": {
    has: ["amsgrad"],
    change: without("max_exp_avg_sq"),
    names: /max_exp_avg_sq$/,
    cause: /AMSGrad/,
  },
  "momentum lost": {
    has: ["momentum"],
    change: without("momentum_buffer"),
    names: /momentum_buffer$/,
    cause: /undampened/,
  },
};

// biome-ignore lint/suspicious/noExplicitAny: layers by their place
function untie(model: any): void {
  model.at(4).weight = parameter(model.at(4).weight.detach().clone());
}

// biome-ignore lint/suspicious/noExplicitAny: an optimizer's groups
function sameRates(optimizer: any): void {
  optimizer.groups[1].lr = optimizer.groups[0].lr;
}

function forEachBuffer({ model }: Saved): void {
  for (const name of Object.keys(model).filter((each) => /running_/.test(each))) model[name].set(model[name].mul(0));
}

describe("faults of a resume", () => {
  it.each(Object.entries(FAULTS))("%s", async (_, { names, cause, ...fault }) => {
    const found = await differenceOf(fault);
    expect(found?.name).toMatch(names);
    expect(found?.cause).toMatch(cause);
  });
});

describe("runs without one", () => {
  it.each([[], ...OPTIONS.filter((option) => option !== "own dropout").map((option) => [option])])(
    "%s",
    async (...has) => {
      expect(await differenceOf({ has: has.filter(Boolean) })).toBeUndefined();
    },
  );
});

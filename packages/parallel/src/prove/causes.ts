/** What usually causes a resume to differ, by what differs first. */
import { type Differing, entriesOf } from "./lines";

const OPTIMIZER = "Save and load all of optimizer.stateDict().";
const SCHEDULE = "Save schedule.stateDict(), and load it after the optimizer.";

/** What a name is of: causes before effects. The first pattern that fits counts. */
const KINDS: readonly (readonly [pattern: RegExp, cause: string])[] = [
  [/^(samples|batch|inputs?|data)\b/, "Other data: another seed, or a place not restored. Save the loader's state."],
  [/(^|\.)(loader|sampler)\b/, "The place in the data was not restored. Save loader.stateDict()."],
  [/(^|\.)(generators?|random|rng)\b/, "A generator was not restored: dropout, noise. Save its stateDict()."],
  [/bad_?epochs|cooldown|^schedules?\..*best$/i, `The plateau's best metric or its count was lost. ${SCHEDULE}`],
  [/^(lr_?)?schedule(s|r)?\b(?!\._?(last_)?lr$)/, `The schedule was not restored, a warm-up runs again. ${SCHEDULE}`],
  [/growth_?tracker$/, "The scaler's count of good steps was lost. Save all of scaler.stateDict()."],
  [/^(grad_?)?scaler\b/, "The scaler was not restored: its scale begins anew. Save scaler.stateDict()."],
  [/^clip/, "The history by which gradients are clipped was lost. Save its window of norms."],
  [/^grad(ient)?s?\b/, "Gradients that were added up are lost. Save where a step ends, or save each parameter.grad."],
  [/groups\.\d+\.weight_?decay$/i, "The weight decay is not the saved one. Load the groups with their options."],
  [/groups\.\d+\.(initial_?)?lr$|\._?(last_)?lr$/i, `A group's learning rate was not restored. ${OPTIMIZER}`],
  [/groups\.\d+\.params$/, "The groups hold other parameters: one was lost, added or put elsewhere."],
  [/groups\.\d+\./, "An option of the optimizer is not the saved one. Change options after loading."],
  [/^optimizer.*\.(step|n_iter|t)$/, "The step counter was saved before or after its step. Save all at one moment."],
  [/(^|\.)master(_param|_weight)?s?$/, `The float32 master weights were made again from 16 bits. ${OPTIMIZER}`],
  [/max_exp_avg_sq$/, `AMSGrad's greatest second moments were lost. ${OPTIMIZER}`],
  [/slow(_param|_weights)?\b/, `Lookahead's slow weights were lost: they begin anew. ${OPTIMIZER}`],
  [/momentum_buffer$/, `The momentum was lost: its first gradient is undampened. ${OPTIMIZER}`],
  [/^optimizer.*\bstate\b/, `A part of the state was lost, or has another name. ${OPTIMIZER}`],
  [/running_(mean|var)$|num_batches_tracked$/, "BatchNorm's averages were not restored. Save model.stateDict()."],
  [/(^|\.)val_/, "Validation has other data or another order. Pass its generator in generators."],
  [/^(epochs?|position)\b/, "The count of epochs or steps was not restored, or is off by one."],
  [/\bcallbacks\b|^early_?stop|(^|\.)(best|wait)$/, "A callback's counters were lost: early stopping counts anew."],
  [/^(averages?|ema|swa)\b(?!.*n_averaged$)/, "The averaged weights are not the saved ones. Save average.stateDict()."],
  [/n_averaged$/, "The number of averaged models was lost: the next has another weight. Save n_averaged."],
  [/^(model|weights|params?|parameters)\b/, "Weights were not restored, or changed after loading."],
];

const OTHER = "The run has this value, and does not restore it.";
const HIDDEN =
  "The recorded inputs of this step were equal: something that the checkpoint lacks took part. Usual: a generator of its own, gradients added up, a tensor that is no buffer, data that are not recorded.";
const UNSEEDED =
  "The run was not broken yet: it is not the same twice. Usual: a generator without a seed, or the time.";

export function kindOf(name: string): number {
  const kind = KINDS.findIndex(([pattern]) => pattern.test(name));
  return kind < 0 ? KINDS.length : kind;
}

const isModel = (name: string) => /^(model|weights|params?|parameters)\b/.test(name);
const isCounter = (name: string) => /^optimizer.*\.step$/.test(name);
const isState = (name: string) => /^optimizer.*\bstate\b/.test(name) && !isCounter(name);
/** What may be an effect of others: the rest a step takes in, or counts with. */
const isEffect = (name: string) => isModel(name) || isState(name) || kindOf(name) > kindOf("optimizer.state.w.step");

interface Found {
  readonly name: string;
  readonly cause: string;
}

/** The name to show first, and why it usually differs. */
export function causeOf(given: Differing): Found {
  const [first] = given.names as [string];
  if (given.isUnbroken) return { name: first, cause: UNSEEDED };
  // What came up in training is told by inputs; state and weights follow from them.
  const rules = given.isLate ? [tied, shifted] : [tied, moved, shifted, swapped, cold, oneMoment];
  for (const rule of rules) {
    const found = rule(given);
    if (found) return found;
  }
  const isHidden = given.isLate && given.names.every(isEffect);
  const name = (isHidden && given.names.find(isModel)) || first;
  const isPacked = isState(name) && entriesOf(given.whole)["optimizer.groups.0.stateDType"] === "q8";
  const cause = isHidden ? HIDDEN : (KINDS[kindOf(name)]?.[1] ?? OTHER);
  return { name, cause: isPacked && !isHidden ? `${cause} Or 8-bit state was rounded and packed again.` : cause };
}

/** Two names of one tensor, equal in all lines of the whole run, that part. */
function tied({ names, broken, lines }: Differing): Found | undefined {
  const sums = (name: string) => lines.map(({ tensors }) => tensors[name]).join();
  for (const name of names.filter(
    (each) => isModel(each) && lines.some(({ tensors }) => tensors[each] !== lines[0]!.tensors[each]),
  )) {
    const other = Object.keys(broken.tensors).find(
      (each) =>
        each !== name && isModel(each) && broken.tensors[each] !== broken.tensors[name] && sums(each) === sums(name),
    );
    if (other)
      return {
        name,
        cause: `It and ${other} were one tensor, and are two: tied weights were loaded apart. Tie them again.`,
      };
  }
  return undefined;
}

/** All weights are those of a neighbouring step. */
function moved({ names, broken, lines }: Differing): Found | undefined {
  const models = names.filter(isModel);
  const near = lines.find(
    ({ step, tensors }) =>
      Math.abs(step - broken.step) === 1 && models.every((name) => tensors[name] === broken.tensors[name]),
  );
  if (models.length === 0 || !near) return undefined;
  const what = `The values are those of step ${near.step}`;
  const counter = names.find(isCounter);
  if (counter && entriesOf(near)[counter] === entriesOf(broken)[counter])
    return { name: counter, cause: `${what}: the step's number is off by one. Count it up before saving, once.` };
  const isNewer = near.step > broken.step;
  const why = isNewer
    ? "saved in the background while training went on. Copy tensors first"
    : "an older copy was saved";
  return { name: models[0]!, cause: `${what}, the counters are not: ${why}.` };
}

/** Samples of another step. */
function shifted({ names, broken, lines }: Differing): Found | undefined {
  const name = names.find((each) => kindOf(each) === 0) ?? "";
  const value = entriesOf(broken)[name];
  const other = lines.find((line) => value !== undefined && entriesOf(line)[name] === value);
  const distance = Math.abs((other?.step ?? 0) - broken.step);
  const cause = `These are the samples of step ${other?.step}: the sampler is off by ${distance}. Save its place after the step.`;
  return other && { name, cause };
}

/** Values of one parameter that another had. */
function swapped({ names, broken, whole }: Differing): Found | undefined {
  const own = names.filter((name) => (isModel(name) || isState(name)) && broken.tensors[name] !== undefined);
  for (const name of own) {
    const other = own.find((each) => each !== name && whole.tensors[each] === broken.tensors[name]);
    const cause = `It holds what ${other} held: parameters of equal shape in another order, as with a frozen one left out. Match by name.`;
    if (other) return { name, cause };
  }
  return undefined;
}

/** The state counts from the start. */
function cold({ names, broken, whole }: Differing): Found | undefined {
  const [then, now] = [whole, broken].map(entriesOf);
  const counters = names.filter(isCounter);
  const isCold = (name: string) => Number(now![name] ?? 0) <= 1 && Number(then![name]) > 2;
  const isLost = Object.keys(whole.tensors).every((name) => !isState(name) || names.includes(name));
  if (counters.length === 0 || !counters.every(isCold) || !isLost || kindOf(names[0]!) === 0) return undefined;
  return { name: counters[0]!, cause: `The optimizer's state was not loaded: it begins cold. ${OPTIMIZER}` };
}

/** One kind of moment differs alone. */
function oneMoment({ names, whole }: Differing): Found | undefined {
  const [, end] = /\.(exp_avg|exp_avg_sq|square_avg|exp_inf|sum)$/.exec(names[0]!) ?? [];
  const isOne = names.every((name) => isState(name) && name.endsWith(`.${end}`));
  const hasOthers = Object.keys(whole.tensors).some((name) => isState(name) && !name.endsWith(`.${end}`));
  const isPacked = entriesOf(whole)["optimizer.groups.0.stateDType"] === "q8";
  if (end === undefined || !isOne || !hasOthers || isPacked) return undefined;
  return {
    name: names[0]!,
    cause: `Of the optimizer's state only ${end} differs: left out, or under another name. ${OPTIMIZER}`,
  };
}

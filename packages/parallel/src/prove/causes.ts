/** What usually causes a resume to differ, by what differs first. */
import { type Differing, entriesOf } from "./lines";

/** What a name is of: causes before effects. The first pattern that fits counts. */
const KINDS: readonly (readonly [pattern: RegExp, cause: string])[] = [
  [
    /^(samples|batch|inputs?|data)\b/,
    "The data begin at another place. Save the loader's state and load it before the first batch: an order drawn anew, another seed or a place that is not restored give other samples.",
  ],
  [
    /(^|\.)(loader|sampler)\b/,
    "The place in the data was not restored. Save loader.stateDict(), which has the epoch's seed and the samples taken.",
  ],
  [
    /(^|\.)(generators?|random|rng)\b/,
    "A random generator was not restored, so dropout, noise and shuffling draw other numbers. Save generator.stateDict(), also that of defaultGenerator.",
  ],
  [
    /(^|\.)(num_bad_epochs|cooldown_counter|bad_epochs)$/,
    "The plateau's best metric and its count of bad epochs were lost, so the learning rate falls at another time. Save schedule.stateDict().",
  ],
  [
    /^schedules?\..*best$/,
    "The plateau's best metric and its count of bad epochs were lost, so the learning rate falls at another time. Save schedule.stateDict().",
  ],
  [/(^|\.)warm_?up/i, "The schedule was not restored: its warm-up runs again. Save schedule.stateDict()."],
  [
    /^(schedules?|scheduler|lr_?schedule)\b/,
    "The schedule was not restored: it counts from the start, and a warm-up runs again. Save schedule.stateDict(), and load it after the optimizer.",
  ],
  [
    /_?growth_?tracker$/,
    "The scaler's count of good steps was lost, so its scale grows at another step. Save all of scaler.stateDict(), not the scale alone.",
  ],
  [
    /^(grad_?)?scaler\b/,
    "The gradient scaler was not restored: its scale begins anew, and steps are skipped again. Save scaler.stateDict().",
  ],
  [/^clip/, "The history by which gradients are clipped was lost. Save its window of norms."],
  [
    /^(grads?|gradients?)\b/,
    "Gradients that were added up when the run was saved are lost. Save where a step ends, or save each parameter.grad.",
  ],
  [
    /groups\.\d+\.(weight_?decay)$/i,
    "The optimizer's weight decay is not the one that was saved: the options of the program or of a migration replaced it.",
  ],
  [
    /groups\.\d+\.(lr|initial_?lr)$/i,
    "A group's learning rate was not restored. Save the optimizer's groups with their options, and load them before the schedule's state.",
  ],
  [
    /groups\.\d+\.params$/,
    "The groups hold other parameters than before: one was lost, added or put into another order.",
  ],
  [
    /groups\.\d+\./,
    "An option of the optimizer differs from the one that was saved. Load the optimizer's groups, and change options afterwards.",
  ],
  [
    /^optimizer.*\.(step|n_iter|t)$/,
    "The optimizer's step counter was saved before or after its step, or set by the program: bias correction differs. Save state, counters and step number at one moment.",
  ],
  [
    /(^|\.)(master(_param)?s?)$/,
    "The float32 master weights were lost and made again from 16-bit weights. Save the optimizer's whole state.",
  ],
  [/max_exp_avg_sq$/, "AMSGrad's greatest second moments were lost. Save the optimizer's whole state."],
  [
    /slow(_param|_weights)?\b/,
    "Lookahead's slow weights were lost, and begin at the present ones. Save the optimizer's whole state.",
  ],
  [
    /momentum_buffer$/,
    "The momentum was not restored, so its first step takes the gradient undampened. Save the optimizer's whole state.",
  ],
  [
    /^optimizer.*\bstate\b/,
    "A part of the optimizer's state was not restored, or under another name. Save and load all of optimizer.stateDict().",
  ],
  [
    /running_(mean|var)$|num_batches_tracked$/,
    "BatchNorm's running averages were not restored. Save model.stateDict(), which has buffers, not the parameters alone.",
  ],
  [
    /(^|\.)(epochs?|position)\b/,
    "The count of epochs was not restored, or is off by one: an epoch begins again, and its shuffle with it.",
  ],
  [
    /^(callbacks|early_?stopping)\b|patience|(^|\.)(best|wait)\b/,
    "A callback's counters were lost: early stopping counts from zero. Save its stateDict().",
  ],
  [
    /^(averages?|ema|swa)\b(?!.*n_averaged$)/,
    "The averaged weights were not restored: they begin at the present ones, or are those of another step. Save average.stateDict().",
  ],
  [
    /^(averages?|ema|swa)\b.*n_averaged$/,
    "The number of averaged models was lost, so the next average has another weight. Save n_averaged with the averages.",
  ],
  [/^(model|weights|params?|parameters)\b/, "Weights were not restored, or changed after loading."],
];

const causeByKind = (kind: number) => KINDS[kind]?.[1] ?? "The run holds this value, but does not restore it.";

export function kindOf(name: string): number {
  const kind = KINDS.findIndex(([pattern]) => pattern.test(name));
  return kind < 0 ? KINDS.length : kind;
}

const HIDDEN =
  "What was recorded was equal before this step, and so were its inputs: something that the checkpoint lacks took part. Usual: a generator of its own, gradients added up over batches, a tensor that is no buffer, data that are not recorded.";
const UNSEEDED =
  "The run was not broken yet: it is not the same twice. Usual: a generator without a seed, the time, or data in another order.";

const isModel = (name: string) => /^(model|weights|params?|parameters)\b/.test(name);
const isState = (name: string) => /^optimizer.*\bstate\b/.test(name);
const isCounter = (name: string) => /^optimizer.*\.step$/.test(name);
/** Of what a step takes in, or counts with; what else differs may be its effect. */
const isInput = (name: string) =>
  !isModel(name) && !(isState(name) && !isCounter(name)) && kindOf(name) <= kindOf("optimizer.state.w.step");

/** The name to show first, and why it usually differs. */
export function causeOf(given: Differing): { readonly name: string; readonly cause: string } {
  const [first] = given.names;
  if (given.isUnbroken) return { name: first!, cause: UNSEEDED };
  for (const rule of [tied, moved, shifted, swapped, cold, oneMoment]) {
    const found = rule(given);
    if (found) return found;
  }
  const isHidden =
    given.isLate &&
    !given.names.some((name) => isInput(name)) &&
    given.names.some((name) => isModel(name) || isState(name));
  if (isHidden) return { name: given.names.find(isModel) ?? first!, cause: HIDDEN };
  return { name: first!, cause: causeByKind(kindOf(first!)) };
}

type Found = { readonly name: string; readonly cause: string } | undefined;

/** Two names of one tensor, equal in all lines of the whole run, that part. */
function tied({ names, broken, lines }: Differing): Found {
  const models = names.filter(isModel);
  for (const name of models)
    for (const other of Object.keys(broken.tensors)) {
      if (other <= name || !isModel(other) || broken.tensors[name] === broken.tensors[other]) continue;
      const areTied = lines.every(({ tensors }) => tensors[name] !== undefined && tensors[name] === tensors[other]);
      if (areTied && new Set(lines.map(({ tensors }) => tensors[name])).size > 1)
        return {
          name,
          cause: `${name} and ${other} were one tensor and are two after the resume: tied weights were loaded apart. Tie them after loading, or load into the tied model.`,
        };
    }
  return undefined;
}

/** All tensors are those of a neighbouring step. */
function moved({ names, broken, lines, isLate }: Differing): Found {
  const models = names.filter((name) => isModel(name) && name in broken.tensors);
  if (models.length === 0 || isLate) return undefined;
  const near = lines.find(
    ({ step, tensors }) =>
      Math.abs(step - broken.step) === 1 && models.every((name) => tensors[name] === broken.tensors[name]),
  );
  if (!near) return undefined;
  const counters = names.filter(isCounter);
  const isAll = counters.length > 0 && counters.every((name) => entriesOf(near)[name] === entriesOf(broken)[name]);
  const what = `The values are those of step ${near.step}`;
  if (isAll)
    return {
      name: counters[0]!,
      cause: `${what}: the step number was saved before it was counted up, or counted up once more after loading. It is off by one.`,
    };
  const cause =
    near.step > broken.step
      ? `${what}, with the counters of step ${broken.step}: tensors were saved in the background while training went on. Copy them before saving.`
      : `${what}: an older copy of the weights was saved.`;
  return { name: models[0]!, cause };
}

/** Samples of another step. */
function shifted({ names, broken, lines }: Differing): Found {
  const name = names.find((each) => kindOf(each) === 0);
  if (name === undefined) return undefined;
  const value = entriesOf(broken)[name];
  const other = lines.find((line) => value !== undefined && entriesOf(line)[name] === value);
  return (
    other && {
      name,
      cause: `These are the samples of step ${other.step}: the sampler is off by ${Math.abs(other.step - broken.step)} steps. Save the loader's state after the step, not after the next batch was taken.`,
    }
  );
}

/** Values of one parameter that another had. */
function swapped({ names, broken, whole, isLate }: Differing): Found {
  if (isLate) return undefined;
  const owner = (name: string) =>
    names.find(
      (other) => other !== name && broken.tensors[name] !== undefined && whole.tensors[other] === broken.tensors[name],
    );
  const isOwn = (name: string) => isModel(name) || isState(name);
  const name = names.find((each) => isOwn(each) && isOwn(owner(each) ?? ""));
  return name === undefined
    ? undefined
    : {
        name,
        cause: `It holds what ${owner(name)} held: parameters of equal shape were matched in another order, as with a frozen one left out. Match by name.`,
      };
}

/** The state counts from the start. */
function cold({ names, broken, whole, lines, isLate }: Differing): Found {
  const counters = names.filter(isCounter);
  if (isLate || counters.length === 0 || names.some((name) => kindOf(name) < kindOf("schedule"))) return undefined;
  const [then, now] = [whole, broken].map((line) => Number(entriesOf(line)[counters[0]!] ?? 0));
  const isCold =
    counters.every((name) => Number(entriesOf(broken)[name] ?? 0) === now) &&
    (now === 0 || now! <= 1) &&
    then! > now! + 1;
  const all = Object.keys(whole.tensors).filter(isState);
  if (!isCold || lines.length === 0 || !all.every((name) => names.includes(name))) return undefined;
  return {
    name: counters[0]!,
    cause:
      "The optimizer's state was not loaded: it begins cold, and its first steps are those of a new run. Save optimizer.stateDict() and load it.",
  };
}

/** One kind of moment differs, for every parameter. */
function oneMoment({ names, whole, isLate }: Differing): Found {
  const ends = new Set(
    names.filter((name) => isState(name) && !isCounter(name)).map((name) => name.slice(name.lastIndexOf(".") + 1)),
  );
  const all = Object.keys(whole.tensors).filter(isState);
  const [end] = ends;
  const name = names.find(isState);
  if (
    isLate ||
    ends.size !== 1 ||
    names.some((each) => !isState(each)) ||
    !/^(exp_avg|exp_avg_sq|square_avg|exp_inf|sum)$/.test(end!)
  )
    return undefined;
  if (all.every((each) => each.endsWith(`.${end}`))) return undefined;
  return {
    name: name!,
    cause: `Of the optimizer's state only ${end} differs: it was left out, or is saved under another name. Save and load all of optimizer.stateDict().`,
  };
}

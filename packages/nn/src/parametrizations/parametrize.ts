/** Parameters that are computed from others, as `torch.nn.utils.parametrize` has them: under its names, so that checkpoints load. */
import { check, markReplaced, OptError, show, Tensor } from "@opt/core";
import { addAroundForward } from "../module/forward-hooks";
import { holdParameters, isParameter } from "../module/held";
import { isModule, type Module } from "../module/module";

/** The tensors by the ends of their names: `original0`, or `0` with `_u` in it. */
export type Originals = Record<string, Tensor | Record<string, Tensor>>;

export interface Parametrization {
  readonly originals: Originals;
  /** The parameter, of what the originals are now. `isForward`: the module's forward asks, and nobody else. */
  compute(originals: Originals, isForward: boolean): Tensor;
}

interface Parametrized {
  readonly entries: Map<string, { readonly compute: Parametrization["compute"]; current: Tensor | undefined }>;
  /** Between the module and its class: it has an accessor for each computed parameter. */
  readonly accessors: object;
  /** Ends what runs around forward. */
  remove: () => void;
}

const parametrizedOf = new WeakMap<object, Parametrized>();

type Holder = Module & { parametrizations?: Record<string, Originals> } & Record<string, unknown>;

/** The parameter of a module, which is its own and not computed. @throws OptError BAD_ARGUMENT, BAD_STATE */
export function parameterOf(where: string, module: Module, name: string): Tensor {
  check(isModule(module), "BAD_ARGUMENT", where, () => `needs a module, got ${show(module)}.`, "new Linear(2, 2)");
  check(typeof name === "string", "BAD_ARGUMENT", where, () => `the name must be a string, got ${show(name)}.`);
  const isComputed = parametrizedOf.get(module)?.entries.has(name) ?? false;
  check(!isComputed, "BAD_STATE", where, () => `${name} is computed already.`, "Call removeParametrization first.");
  const value = (module as Holder)[name];
  check(
    value instanceof Tensor && isParameter(value),
    "BAD_ARGUMENT",
    where,
    () => `the module must have a parameter ${show(name)}, got ${show(value)}.`,
    'For example "weight".',
  );
  return value;
}

/** Takes a parameter's place by what `compute` makes of the originals: once for each forward, and for whoever reads it else. */
export function parametrize<M extends Module>(module: M, name: string, { originals, compute }: Parametrization): M {
  const holder = module as unknown as Holder;
  const before = holder[name] as Tensor;
  const found = parametrizedOf.get(module) ?? begun(holder);
  const entry = { compute, current: undefined as Tensor | undefined };
  found.entries.set(name, entry);
  if (!Object.values(originals).includes(before)) markReplaced(before);
  Reflect.deleteProperty(module, name);
  holder.parametrizations = { ...holder.parametrizations, [name]: originals };
  Object.defineProperty(found.accessors, name, {
    configurable: true,
    get: () => entry.current ?? compute(holder.parametrizations![name]!, false),
    set: () => {
      throw new OptError(
        "BAD_STATE",
        `${module.constructor.name}.${name}`,
        `is computed from parametrizations.${name}, so it takes no value.`,
        `Write those, or call removeParametrization(module, "${name}") first.`,
      );
    },
  });
  return module;
}

/** A class of its own for a module: compiled functions ask only properties of the module itself, not accessors. */
function begun(holder: Holder): Parametrized {
  const accessors = Object.create(Object.getPrototypeOf(holder)) as object;
  const entries: Parametrized["entries"] = new Map();
  Object.setPrototypeOf(holder, accessors);
  const remove = addAroundForward(holder, () => {
    const outer = [...entries.values()].map(({ current }) => current);
    for (const [name, entry] of entries) entry.current = entry.compute(holder.parametrizations![name]!, true);
    return () => {
      for (const [i, entry] of [...entries.values()].entries()) {
        entry.current?.dispose();
        entry.current = outer[i];
      }
    };
  });
  const found = { entries, accessors, remove };
  parametrizedOf.set(holder, found);
  return found;
}

/**
 * Makes a computed parameter a plain one again, with the value that it has now: PyTorch's `remove_parametrizations`. Make optimizers
 * afterwards.
 *
 * @throws OptError BAD_STATE for a parameter that is not computed; BAD_ARGUMENT for what is no module
 * @example
 * const layer = weightNorm(new Linear(4, 2));
 * removeParametrization(layer); // the state has "weight" again
 */
export function removeParametrization<M extends Module>(module: M, name = "weight"): M {
  const where = "removeParametrization";
  check(isModule(module), "BAD_ARGUMENT", where, () => `needs a module, got ${show(module)}.`, "new Linear(2, 2)");
  const found = parametrizedOf.get(module);
  check(
    found?.entries.has(name) ?? false,
    "BAD_STATE",
    where,
    () => `${show(name)} is not computed.`,
    "weightNorm and spectralNorm take a name, too.",
  );
  const holder = module as unknown as Holder;
  const { [name]: originals, ...others } = holder.parametrizations!;
  const own = Object.values(originals!).filter((value) => value instanceof Tensor);
  const computed = found!.entries.get(name)!.compute(originals!, false);
  const value = computed.detach().clone();
  computed.dispose();
  value.isParameter = true;
  value.requiresGrad = own.some(({ requiresGrad }) => requiresGrad);
  found!.entries.delete(name);
  Reflect.deleteProperty(found!.accessors, name);
  if (found!.entries.size === 0) {
    found!.remove();
    Object.setPrototypeOf(holder, Object.getPrototypeOf(found!.accessors) as object);
    parametrizedOf.delete(module);
    Reflect.deleteProperty(holder, "parametrizations");
  } else holder.parametrizations = others;
  holder[name] = value;
  for (const original of own) markReplaced(original, value);
  holdParameters(module, [name]);
  return module;
}

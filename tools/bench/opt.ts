/** Opt itself, on one of its devices. */
import { compile, init, type OptimizerClass, parameter, tensor } from "@opt/core";
import * as optim from "@opt/optim";
import { type Contender, timed } from "./contender";
import { firstParameters, gradients, mixedGradients, type OptimizerName, type OptimizerWork } from "./optimizer-work";

const classes = { ...optim };

/** Matrix decompositions come once in many steps: what is measured is the steps between. */
const RARELY = 2 ** 30;

/** What is not the default. */
const OPTIONS: { readonly [Name in OptimizerName]?: object } = {
  SGD: { momentum: 0.9 },
  SOAP: { preconditionFrequency: RARELY },
  Shampoo: { preconditionFrequency: RARELY, startStep: 1 },
  GaLore: { updateProjectionGap: RARELY },
  APOLLO: { updateProjectionGap: RARELY },
};

/** An optimizer and its options. */
// biome-ignore lint/suspicious/noExplicitAny: each class has options of its own
export function optimizerOf(name: OptimizerName): readonly [OptimizerClass<any>, object] {
  if (name === "AMSGrad") return [classes.Adam, { amsgrad: true }];
  return [classes[name], OPTIONS[name] ?? {}];
}

/** The js device takes minutes on the largest work. */
const LARGEST_ON_JS = 2 ** 21;

/** @param isCompiled the step is a compiled function */
export function opt(deviceName: string, isCompiled = false): Contender<OptimizerWork> {
  return {
    name: `opt ${deviceName}${isCompiled ? " compiled" : ""}`,
    tolerance: 0,
    async open({ optimizer: name, tensors, size, rows, isMixed }) {
      if (deviceName === "js" && tensors * size > LARGEST_ON_JS) return "too slow to be of interest at this size";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const first = firstParameters(size);
      const gradient = (isMixed ? mixedGradients : gradients)(size);
      const place = { device, shape: rows === undefined ? [size] : [rows, size / rows] };
      const params = Array.from({ length: tensors }, () => {
        const param = parameter(first.slice(), place);
        param.grad = tensor(gradient, place);
        return param;
      });
      const [Class, options] = optimizerOf(name);
      const optimizer = new Class(params, options);
      const compiled = compile(() => optimizer.step());
      const step = isCompiled ? compiled : () => optimizer.step();
      return {
        run: (steps) => timed(steps, step, () => device.sync()),
        result: async (count) => [...(await params[0]!.data()).subarray(0, count)],
        async close() {
          compiled.dispose();
          optimizer.dispose();
          for (const param of params) {
            param.grad?.dispose();
            param.dispose();
          }
        },
      };
    },
  };
}

/** Opt itself, on one of its devices. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { init, type Optimizer, parameter, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { SGD } from "@opt/sgd";
import { type Contender, timed } from "./contender";
import { firstParameters, gradients, type OptimizerWork } from "./optimizer-work";

const OPTIMIZERS = {
  AdamW: (params: Parameters<typeof parameter>[0][]) => new AdamW(params as never),
  AMSGrad: (params: Parameters<typeof parameter>[0][]) => new Adam(params as never, { amsgrad: true }),
  NAdam: (params: Parameters<typeof parameter>[0][]) => new NAdam(params as never),
  SGD: (params: Parameters<typeof parameter>[0][]) => new SGD(params as never, { momentum: 0.9 }),
  RMSprop: (params: Parameters<typeof parameter>[0][]) => new RMSprop(params as never),
  Adamax: (params: Parameters<typeof parameter>[0][]) => new Adamax(params as never),
  RAdam: (params: Parameters<typeof parameter>[0][]) => new RAdam(params as never),
} as const;

/** The js device takes minutes on the largest work. */
const LARGEST_ON_JS = 2 ** 21;

export function opt(deviceName: string): Contender<OptimizerWork> {
  return {
    name: `opt ${deviceName}`,
    tolerance: 0,
    async open({ optimizer: name, tensors, size }) {
      if (deviceName === "js" && tensors * size > LARGEST_ON_JS) return "too slow to be of interest at this size";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const first = firstParameters(size);
      const gradient = gradients(size);
      const params = Array.from({ length: tensors }, () => {
        const param = parameter(first.slice(), { device });
        param.grad = tensor(gradient, { device });
        return param;
      });
      const optimizer = OPTIMIZERS[name](params) as unknown as Optimizer<never>;
      return {
        run: (steps) =>
          timed(
            steps,
            () => optimizer.step(),
            () => device.sync(),
          ),
        result: async (count) => [...(await params[0]!.data()).subarray(0, count)],
        async close() {
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

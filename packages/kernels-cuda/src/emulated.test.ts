/** The device on the emulated driver: as its users meet it, and against PyTorch's numbers. */
import { type Device, init, registerBackend } from "@opt/core";
import { goldenSuite, whyUnavailable } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { deviceSuite, orderSuite } from "../testing/device-suite";
import { openEmulated } from "../testing/emulator";

const reason = await whyUnavailable(async () => openEmulated());
deviceSuite({ name: "emulated cuda", open: openEmulated, reason });
orderSuite({ name: "emulated cuda, transfers run late", open: openEmulated, reason });
orderSuite({ name: "emulated cuda, transfers run at once", open: () => openEmulated(0, { eager: true }), reason });

if (reason === undefined) {
  const device = (): Promise<Device> => {
    registerBackend({ name: "cuda", rank: 40, load: async (index) => openEmulated(index) });
    return init("cuda");
  };
  goldenSuite({ name: "emulated cuda", optimizers: await optimizerClasses(), device });
}

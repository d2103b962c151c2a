// Has the button Run wait until the kernel has answered what was entered before. A control that changes again meanwhile
// holds the change back, and JupyterLab has two threads of a kernel; a click is sent at once, and could overtake both.

async function initialize({ model }) {
  const linked = (name) => model.widget_manager.get_model(model.get(name).replace("IPY_MODEL_", ""));
  const [run, panel] = [await linked("run"), await linked("panel")];
  const everything = (each) => [each, ...(each.get("children") ?? []).flatMap(everything)];
  const send = run.send.bind(run);
  run.send = async (...message) => {
    while (everything(panel).some((each) => each._pending_msgs)) await new Promise((done) => setTimeout(done, 20));
    send(...message);
  };
}

export default { initialize };

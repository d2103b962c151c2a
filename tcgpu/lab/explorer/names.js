// Gives the controls of the panel around this widget tooltips and names for screen readers, from the words in their
// rows or from `tips`, and keeps JupyterLab's own keys, such as arrows, from them.

const CONTROLS = "input, select, button, textarea, a[href], [role=slider], [role=tab], [tabindex]";

async function render({ model, el }) {
  while (!el.isConnected) await new Promise(requestAnimationFrame);
  const panel = el.closest(".tcgpu-explorer"), tips = model.get("tips");
  const name = () => {
    for (const chart of panel.querySelectorAll("img")) chart.alt ||= "chart; its numbers are in the table and what is saved";
    for (const control of panel.querySelectorAll(CONTROLS)) {
      const row = control.closest(".tcgpu-row, .widget-inline-hbox"), label = row?.querySelector(".widget-label");
      const words = [label, row?.querySelector(".tcgpu-help")].map((part) => part?.textContent.trim()).filter(Boolean);
      if (control.classList.contains("noUi-handle")) words.push(control.matches(".noUi-handle-upper") ? "upper" : "");
      const own = control.textContent.trim(), called = words.join(", ");
      if (control.querySelector("i")) control.setAttribute("aria-label", own); // without its icon
      else if (!control.labels?.[0]?.textContent.trim() && (!own || control.tagName === "SELECT")) {
        control.setAttribute("aria-label", called || control.title);
      }
      const tip = tips[words[0]] ?? tips[own] ?? called;
      if (tip) control.title ||= tip;
      control.dataset.lmSuppressShortcuts = "true";
    }
  };
  new MutationObserver(name).observe(panel, { childList: true, subtree: true });
  name();
}

export default { render };

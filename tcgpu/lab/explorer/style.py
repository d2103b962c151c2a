"""The style sheet of the panel, in the colours of the theme that is chosen in JupyterLab or Voila."""

STYLE = """<style>
.tcgpu-explorer { border: 1px solid var(--jp-border-color2); border-radius: 6px; padding: 10px; max-width: 1080px;
  background: var(--jp-layout-color1); color: var(--jp-ui-font-color1); box-sizing: border-box; overflow: hidden; }
.tcgpu-cards { display: flex; flex-flow: row wrap; gap: 10px; overflow: visible; }
.tcgpu-card { flex: 1 1 360px; border: 1px solid var(--jp-border-color2); border-radius: 6px; padding: 6px 10px 8px;
  box-sizing: border-box; overflow: hidden; }
.tcgpu-explorer .tcgpu-heading { font-weight: 600; margin: 2px; }
.tcgpu-explorer .tcgpu-source { color: var(--jp-ui-font-color2); font-size: 11px; width: 100px; flex: none; }
.tcgpu-explorer .tcgpu-words { color: var(--jp-ui-font-color2); font-size: 11.5px; min-width: 0; }
.tcgpu-explorer .tcgpu-words .widget-html-content { line-height: 1.25; padding-top: 6px; }
.tcgpu-explorer img { object-fit: contain; object-position: left top; max-width: 100%; }
.tcgpu-explorer .tcgpu-rows img { max-width: none; }
.tcgpu-chips { display: flex; flex-flow: row wrap; overflow: visible; }
.tcgpu-chips > .jupyter-button { width: auto; height: 24px; line-height: 24px; padding: 0 8px; border-radius: 12px;
  font-size: 12px; }
.tcgpu-scroll { overflow-y: auto; overflow-x: hidden; }
.tcgpu-scroll > * { flex: none; }
.tcgpu-bar { margin: 8px 0; display: flex; flex-flow: row wrap; align-items: center; overflow: visible; }
.tcgpu-card .widget-select > select { width: 100%; }
.tcgpu-message .widget-html-content { color: var(--jp-error-color1, #b00020); font-size: 13px; line-height: 1.35;
  white-space: pre-wrap; }
.tcgpu-status { font-size: 12px; color: var(--jp-ui-font-color2); }
.tcgpu-explorer .jupyter-widget-tab > .widget-tab-contents, .tcgpu-explorer .widget-tab-contents { padding: 6px; }
.tcgpu-charts { display: flex; flex-flow: row wrap; gap: 8px; overflow: visible; }
.tcgpu-rows { overflow: auto; border: 1px solid var(--jp-border-color2); border-radius: 4px; }
.tcgpu-explorer table.tcgpu-table { border-collapse: collapse; font-size: 11px; line-height: 1.4; width: 100%;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
.tcgpu-explorer table.tcgpu-table th { position: sticky; top: 0; font-weight: 600;
  background: var(--jp-layout-color2); }
.tcgpu-explorer table.tcgpu-table th, .tcgpu-explorer table.tcgpu-table td { padding: 2px 5px; text-align: left; }
.tcgpu-explorer table.tcgpu-table .number { text-align: right; }
.tcgpu-explorer table.tcgpu-table tr.recorded { color: var(--jp-ui-font-color2); }
.tcgpu-python pre { margin: 4px 2px; font: 12px/1.4 var(--jp-code-font-family, monospace); white-space: pre-wrap; }
.tcgpu-explorer a.tcgpu-download { color: var(--jp-content-link-color, #1976d2); font-size: 13px; }
</style>"""

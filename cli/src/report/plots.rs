//! The plots of the HTML report: SVG by `plotters`, coloured by the page's style sheet.
//!
//! plotters writes colours as attributes, and a style sheet beats attributes. So black stands for "the
//! colour of the text" and grey for "the colour of a grid line", and the page redefines both when it is
//! dark. The colours of the cures are readable on both.

use plotters::prelude::*;

use super::ReportError;
use super::model::{Cure, Paired, Report, Run};

const FONT: &str = "sans-serif";
/// Text and axes; the page's style sheet knows it.
const INK: RGBColor = RGBColor(0, 0, 0);
/// Grid; the page's style sheet knows it.
const GRID: RGBColor = RGBColor(200, 200, 200);

/// The colour of a cure, on white and on black.
pub fn colour(cure: Cure) -> RGBColor {
    match cure {
        Cure::None => RGBColor(136, 136, 136),
        Cure::ClearEachCall => RGBColor(211, 84, 0),
        Cure::ReleaseEveryTask => RGBColor(142, 100, 200),
        Cure::Sweep => RGBColor(22, 150, 120),
    }
}

/// Thread states over time, one curve a cure, for the runs of one line.
pub fn growth(runs: &[&Run]) -> Result<String, ReportError> {
    let end =
        runs.iter().flat_map(|run| &run.growth).map(|sample| sample.seconds).fold(1.0, f64::max);
    let most = runs
        .iter()
        .flat_map(|run| &run.growth)
        .map(|sample| sample.states)
        .max()
        .unwrap_or(1)
        .max(10);
    draw("the growth of thread states", (860, 360), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..end, (1.0..most as f64 * 1.6).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style((FONT, 14, &INK))
            .axis_desc_style((FONT, 14, &INK))
            .x_desc("seconds since the server was up")
            .y_desc("thread states (log scale)")
            .x_label_formatter(&|seconds| format!("{seconds:.0}"))
            .y_label_formatter(&|states| super::table::grouped(states.round() as u64))
            .draw()?;
        for run in runs {
            let points =
                run.growth.iter().map(|sample| (sample.seconds, (sample.states as f64).max(1.0)));
            chart.draw_series(LineSeries::new(points, colour(run.cure).stroke_width(2)))?;
            let aged = run.growth.iter().filter(|sample| sample.phase == "aged");
            let dots = aged.map(|sample| (sample.seconds, (sample.states as f64).max(1.0)));
            chart.draw_series(dots.map(|dot| Circle::new(dot, 5, colour(run.cure).filled())))?;
        }
        Ok(())
    })
}

/// Large PUTs fresh and after, for all lines: two bars a cure, the second one solid.
pub fn throughput(report: &Report) -> Result<String, ReportError> {
    let groups = groups(report.runs.iter().map(|run| &*run.line));
    let most = report
        .runs
        .iter()
        .map(|run| run.large.fresh_mb_s.max(run.large.after_mb_s))
        .fold(1.0, f64::max);
    draw("the rates of large PUTs", (860, 340), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..groups.len() as f64, 0.0..most * 1.12)?;
        grid(&mut chart, "MB/s")?;
        for (index, line) in groups.iter().enumerate() {
            let runs: Vec<&Run> = report.runs.iter().filter(|run| run.line == *line).collect();
            let width = 0.86 / (2 * runs.len()) as f64;
            for (slot, run) in runs.iter().enumerate() {
                let left = index as f64 + 0.07 + 2.0 * width * slot as f64;
                let colour = colour(run.cure);
                let fresh = [(left + 0.1 * width, 0.0), (left + width, run.large.fresh_mb_s)];
                let after = [(left + width, 0.0), (left + 1.9 * width, run.large.after_mb_s)];
                chart.draw_series([
                    Rectangle::new(fresh, colour.mix(0.35).filled()),
                    Rectangle::new(after, colour.filled()),
                ])?;
                let label = format!("{:.2}", run.large.after_over_fresh);
                let at =
                    (left + width, run.large.fresh_mb_s.max(run.large.after_mb_s) + most * 0.035);
                chart.draw_series([Text::new(label, at, centred(12))])?;
            }
            // Below the axis, where the chart does not draw.
            let (x, y) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
            let title = runs.first().map_or_else(String::new, |run| run.title());
            area.draw(&Text::new(title, (x, y + 16), centred(15)))?;
        }
        Ok(())
    })
}

/// Server CPU of a cure over none, one bar a comparison, with its interval.
pub fn cost(pairs: &[Paired]) -> Result<String, ReportError> {
    let most = pairs.iter().map(|pair| pair.ratio_high).fold(1.2, f64::max) * 1.06;
    let height = 60 + 30 * pairs.len() as u32;
    draw("the cost of the cures", (860, height), |area| {
        let rows = pairs.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(380)
            .build_cartesian_2d(0.0..most, 0.0..rows)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style((FONT, 14, &INK))
            .axis_desc_style((FONT, 14, &INK))
            .x_desc("server CPU, of what it is without a cure")
            .draw()?;
        for (index, pair) in pairs.iter().enumerate() {
            let middle = rows - index as f64 - 0.5;
            let colour = colour(pair.cure);
            chart.draw_series([Rectangle::new(
                [(0.0, middle - 0.3), (pair.ratio, middle + 0.3)],
                colour.filled(),
            )])?;
            if let Some((low, high)) = pair.interval() {
                let interval = [(low, middle), (high, middle)];
                chart.draw_series([PathElement::new(interval, INK.stroke_width(2))])?;
            }
            let label = format!("{:.3}", pair.ratio);
            let inside = ("sans-serif", 13, &WHITE).into_text_style(area).pos(position(HPos::Left));
            chart.draw_series([Text::new(label, (most * 0.01, middle), inside)])?;
            let idle = if pair.idle_threads == 0 {
                String::new()
            } else {
                format!(", {} idle threads", super::table::grouped(pair.idle_threads))
            };
            let name = format!(
                "{} {}, {}{idle}",
                pair.line,
                pair.title(),
                super::table::work(&pair.metric)
            );
            let beside = (FONT, 13, &INK).into_text_style(area).pos(position(HPos::Right));
            let (x, y) = chart.backend_coord(&(0.0, middle));
            area.draw(&Text::new(name, (x - 8, y), beside))?;
        }
        chart.draw_series([PathElement::new([(1.0, 0.0), (1.0, rows)], INK.stroke_width(1))])?;
        Ok(())
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(
    what: &'static str,
    size: (u32, u32),
    paint: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let painted = paint(&area).and_then(|()| area.present().map_err(Into::into));
        painted.map_err(|error| ReportError::Plot(what, error.to_string()))?;
    }
    // The page scales a plot to its column: a fixed size would be clipped on a narrow screen.
    let (width, height) = size;
    Ok(svg.replacen(&format!("width=\"{width}\" height=\"{height}\" "), "", 1))
}

type Bars<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn grid(chart: &mut Bars<'_, '_>, unit: &str) -> Drawn {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style((FONT, 14, &INK))
        .axis_desc_style((FONT, 14, &INK))
        .y_desc(unit)
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .draw()?;
    Ok(())
}

fn centred(size: i32) -> TextStyle<'static> {
    TextStyle::from((FONT, size).into_font()).color(&INK).pos(position(HPos::Center))
}

fn position(h_pos: HPos) -> plotters::style::text_anchor::Pos {
    plotters::style::text_anchor::Pos::new(h_pos, VPos::Center)
}

use plotters::style::text_anchor::{HPos, VPos};

/// The different names, in their order.
fn groups<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut groups = Vec::new();
    for name in names {
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    groups
}
